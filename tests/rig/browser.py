"""A headless Chromium, driven over a pipe: it needs no port, and ends when the pipe does, whatever ends the test run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.rig.waiting import wait_for

NAMES = ("chromium", "chromium-browser", "google-chrome")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--window-size=1400,900",
)

KEYS = {
    "ArrowRight": 39,
    "ArrowLeft": 37,
    "ArrowDown": 40,
    "ArrowUp": 38,
    "Enter": 13,
    "Escape": 27,
    "Home": 36,
    "End": 35,
    "Tab": 9,
}


def missing() -> str:
    """What has to be installed, or nothing."""
    return "" if _program() else "chromium is not installed"


class Browser:
    """One browser with one page.

    :param profile: a folder of its own, which it fills.
    """

    def __init__(self, profile: Path) -> None:
        self._profile = profile
        self._number = 0
        self._buffer = b""
        self._session = ""
        self.complaints: list[str] = []
        """What the page logged as an error or a warning, and exceptions that nobody caught."""

    def __enter__(self) -> Self:
        their_input, self._out = os.pipe()
        self._in, their_output = os.pipe()
        # The browser reads from its descriptor 3 and writes to 4.
        script = f'exec "$0" "$@" 3<&{their_input} 4>&{their_output}'
        command = ["bash", "-c", script, _program(), *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(their_input, their_output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(their_input)
        os.close(their_output)
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self._out, self._in):
            os.close(descriptor)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def open(self, url: str, ready: str) -> None:
        """:param ready: JavaScript that is true once the page is."""
        self.call("Page.navigate", url=url)
        self.wait_for(ready)

    def evaluate(self, script: str) -> Any:
        """:raises AssertionError: the script threw."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, timeout: float = 30) -> Any:
        return wait_for(lambda: self.evaluate(script), timeout, script)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """A key with a name, or a character."""
        words = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
        if key == "Enter":
            words["text"] = "\r"
        elif len(key) == 1:
            words["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown", **words)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{name: value for name, value in words.items() if name != "text"})

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        found: dict[str, Any] = answer["result"]
        return found

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _read(self, timeout: float = 60) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise AssertionError("the browser does not answer" if not ready else "the browser ended")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: Mapping[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"])[:500])
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(parameters["entry"])[:500])


def _program() -> str:
    return next((found for name in NAMES if (found := shutil.which(name))), "")

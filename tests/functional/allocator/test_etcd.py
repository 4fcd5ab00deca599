"""What only etcd does: limits of a transaction, restarts, compaction, certificates and users."""

from __future__ import annotations

import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest
from oslo_config import cfg

from lbaas_scheduler.allocator.core.drivers import Query, Settings
from lbaas_scheduler.allocator.core.states import Note
from lbaas_scheduler.allocator.drivers.etcd import EtcdDriver
from lbaas_scheduler.allocator.drivers.etcd_client import Access
from lbaas_scheduler.conf import allocator as options
from lbaas_scheduler.errors import ConfigurationError, Contention, StoreUnavailable, TransactionTooLarge
from tests.allocator_side import R, V, lowest, new_allocator, slot, vlan
from tests.house.sources import ROOT
from tests.rig.etcd import Etcd
from tests.rig.waiting import wait_for


def test_what_is_too_much_for_one_transaction_is_refused_before_anything_is_written(etcd):
    allocator = new_allocator(etcd)
    allocator.define(R, {"last": 99})
    assert len(allocator.allocate_many([slot(f"c{number}") for number in range(25)])) == 25
    with pytest.raises(TransactionTooLarge, match="etcd does 128 at once; split it"):
        allocator.allocate_many([slot(f"d{number}") for number in range(40)])
    assert allocator.usage(R).used == 25


def test_two_installations_share_a_cluster(etcd_server):
    access = Access((etcd_server.url,))
    for name in ("one", "two"):
        allocator = new_allocator(EtcdDriver(access, f"/{etcd_server.new_namespace()}/{name}"))
        allocator.define(V, lowest(ranges="1-10"))
        assert allocator.allocate(vlan()).value == 1


def test_a_member_that_is_away_is_passed_over(etcd_server):
    access = Access(("http://127.0.0.1:9", etcd_server.url), timeout_seconds=2)
    driver = EtcdDriver(access, etcd_server.new_namespace())
    assert driver.count(Query(Note)) == 0


def test_nobody_there_is_told_after_a_bounded_time_and_not_where_etcd_would_be(caplog):
    driver = EtcdDriver(Access(("http://127.0.0.1:9",), timeout_seconds=1))
    with pytest.raises(StoreUnavailable, match=r"store etcd is unavailable for now: no member answers$"):
        driver.count(Query(Note))
    assert "No member of etcd answers at http://127.0.0.1:9: " in caplog.text


@pytest.mark.parametrize("endpoint", ["xyz://h:2379", "h:2379", "", "http://"])
def test_cases_33_34_47_an_endpoint_is_a_web_address(endpoint):
    with pytest.raises(ConfigurationError, match="give http://host:port"):
        Access((endpoint,))


def test_case_35_no_endpoint_at_all():
    with pytest.raises(ConfigurationError, match="no etcd endpoint"):
        Access(())


@pytest.fixture
def watched(own_etcd):
    """A store of one's own and what a watcher of it has seen."""
    driver = EtcdDriver(Access((own_etcd.url,), timeout_seconds=2))
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-4000"})
    stop, ready, seen = threading.Event(), threading.Event(), SimpleQueue()

    def follow():
        for change in allocator.watch(stop, ready):
            seen.put(change)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert ready.wait(20)
    yield own_etcd, driver, allocator, seen
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_394_a_watcher_survives_a_restart_and_misses_nothing(watched):
    server, _, allocator, seen = watched
    allocator.allocate(vlan("before"))
    assert seen.get(timeout=10).current.owner_id == "before"
    server.kill()
    server.start()
    allocator.allocate(vlan("after"))
    # Within 5 s of its return, and once.
    assert seen.get(timeout=5).current.owner_id == "after"
    assert seen.empty()


def test_1140_a_watcher_whose_place_was_compacted_away_reads_everything_anew(watched):
    server, driver, allocator, seen = watched
    kept, changed, gone = allocator.hold([vlan("kept"), vlan("changed"), vlan("gone")], 600)
    for _ in range(3):
        seen.get(timeout=10)
    server.kill()
    # Whoever is faster after the start: these changes and the compaction, or the watcher. Both must end well.
    server.start()
    allocator.commit(changed.id)
    allocator.release(gone.id)
    for number in range(20):
        allocator.allocate(vlan(f"n{number}"))
    revision = driver._client.post("/kv/range", {"key": "YQ=="})[0]["header"]["revision"]
    server.run("compaction", "--physical", revision)
    current = {}
    wait_for(lambda: _drain(seen, current) or len(current) == 22, 10, "all changes")
    assert current["gone"] is None
    assert current["changed"].status == "active"
    assert allocator.get(kept.id).status == "held"


def test_a_watch_from_a_compacted_revision_is_noticed(own_etcd):
    """etcd answers such a watch with a refusal that its client library hides."""
    driver = EtcdDriver(Access((own_etcd.url,), timeout_seconds=2))
    allocator = new_allocator(driver)
    allocator.define(V, {"ranges": "1-4000"})
    stop, ready, seen = threading.Event(), threading.Event(), []
    changes = allocator.watch(stop, ready)
    allocator.allocate(vlan("first"))
    # A generator does nothing until it is asked: what comes first is read, the rest is watched.
    thread = threading.Thread(target=lambda: seen.extend(iter(lambda: next(changes, None), None)), daemon=True)
    thread.start()
    assert ready.wait(10)
    own_etcd.daemon.signal(19)  # SIGSTOP: the watch hangs, as behind a broken network
    own_etcd.daemon.signal(18)
    for number in range(50):
        allocator.allocate(vlan(f"n{number}"))
    revision = driver._client.post("/kv/range", {"key": "YQ=="})[0]["header"]["revision"]
    own_etcd.run("compaction", revision)
    allocator.allocate(vlan("last"))
    wait_for(lambda: any(change.current and change.current.owner_id == "last" for change in seen), 10, "the last change")
    stop.set()
    thread.join(20)
    assert len({change.current.owner_id for change in seen if change.current}) == 51


def test_allocations_under_way_outlive_a_restart_and_a_compaction(watched):
    server, driver, allocator, seen = watched
    stop, granted = threading.Event(), []

    def work(number):
        while not stop.is_set():
            owner = f"w{number}-{len(granted)}"
            # The same owner until it is answered: whatever went through meanwhile must be what it gets.
            while not _answered(allocator, owner, granted):
                pass

    def wait_for_more(what):
        before = len(granted)
        wait_for(lambda: len(granted) > before + 20, 30, what)

    with ThreadPoolExecutor(4) as threads:
        workers = [threads.submit(work, number) for number in range(4)]
        wait_for_more("allocations before")
        server.kill()
        server.start()
        wait_for_more("allocations after the restart")
        revision = driver._client.post("/kv/range", {"key": "YQ=="})[0]["header"]["revision"]
        server.run("compaction", "--physical", revision)
        wait_for_more("allocations after the compaction")
        stop.set()
        for worker in workers:
            worker.result()
    present = {grant.id: grant.value for grant in allocator.list()}
    assert present == {grant.id: grant.value for grant in granted}
    assert len(set(present.values())) == len(granted)
    current = {}
    wait_for(lambda: _drain(seen, current) or {state.id for state in current.values()} == present.keys(), 5, "all changes")
    assert allocator.check() == []


def _answered(allocator, owner, granted):
    try:
        granted.append(allocator.allocate(vlan(owner)))
    except (Contention, StoreUnavailable):
        return False
    return True


def _drain(seen, current):
    while not seen.empty():
        change = seen.get()
        state = change.current or change.previous
        current[state.owner_id] = change.current
    return False


@pytest.fixture
def secured(rig, tmp_path_factory):
    """An etcd that wants our certificate, and then a user's password."""
    if Etcd.missing():
        pytest.skip(f"service missing: etcd: {Etcd.missing()}")
    folder = tmp_path_factory.mktemp("certificates")
    _certificates(folder)
    service = rig.private(Etcd, "own-etcd")
    url = f"https://127.0.0.1:{service.ports[0]}"
    arguments = (
        "--listen-client-urls", url, "--advertise-client-urls", url, "--client-cert-auth", "true",
        "--cert-file", f"{folder}/server.pem", "--key-file", f"{folder}/server.key", "--trusted-ca-file", f"{folder}/ca.pem",
    )  # fmt: skip
    service = Etcd(
        rig,
        service.folder,
        service.ports,
        arguments,
        tuple(f"{folder}/{name}" for name in ("ca.pem", "client.pem", "client.key")),
    )
    service.start()
    yield service, folder
    service.kill()


def _certificates(folder):
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=rig-ca",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/O={name}")
        (folder / f"{name}.ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-out", f"{name}.pem", "-extfile", f"{name}.ext")  # fmt: skip


PASSWORDS = {"root": "r00t", "lbaas": "sesame"}


def documented(pattern):
    """Indented lines of the page on etcd with certificates and users."""
    page = (ROOT / "doc" / "source" / "allocator.rst").read_text().partition("With TLS and users\n")[2]
    found = re.findall(f"^    {pattern}$", page, re.MULTILINE)
    assert found
    return found


def configured(url, files):
    """``[allocator]`` as the page has it, but for where this etcd and its certificates are."""
    here = {"etcd_endpoints": url, "etcd_password": PASSWORDS["lbaas"]} | {f"etcd_{name}": path for name, path in files.items()}
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    for name, value in documented(r"(etcd_\w+|driver) = (.*)"):
        text = here.pop(name, value)
        conf.set_override(name, text.split(",") if name == "etcd_endpoints" else text, "allocator")
    assert not here, "the page has them all"
    assert (conf.allocator.driver, conf.allocator.etcd_user) == ("etcd", "lbaas")
    return dict(conf.allocator.items())


def test_certificates_and_users(secured, caplog):
    server, folder = secured
    files = {"ca_cert": f"{folder}/ca.pem", "cert": f"{folder}/client.pem", "key": f"{folder}/client.key"}
    url = server.url
    with pytest.raises(StoreUnavailable):
        EtcdDriver(Access((url,), timeout_seconds=1)).count(Query(Note))
    assert "certificate verify failed" in caplog.text

    for command in documented("etcdctl (.*)"):
        words = command.split()
        server.run(*words[:-1], f"{words[-1]}:{PASSWORDS[words[-1]]}" if words[:2] == ["user", "add"] else words[-1])

    allocator = new_allocator(EtcdDriver.open(Settings(None, configured(url, files))))
    allocator.define(V, lowest(ranges="1-10"))
    assert allocator.allocate(vlan()).value == 1
    server.kill()
    server.start()
    assert allocator.allocate(vlan("n2")).value == 2, "tokens are forgotten by a restart and renewed"

    for user, password in (("lbaas", "wrong"), ("nobody", "sesame")):
        with pytest.raises(ConfigurationError, match=f"etcd refuses user '{user}'"):
            EtcdDriver(Access((url,), **files, user=user, password=password)).count(Query(Note))
    outside = EtcdDriver(Access((url,), **files, user="lbaas", password="sesame"), "/somebody-else")
    with pytest.raises(StoreUnavailable, match="permission denied"):
        outside.read(Query(Note))
    assert "sesame" not in repr(Access((url,), user="lbaas", password="sesame"))

# Shared by the scripts of this folder (sourced). Everything is told on standard error: standard output belongs to the
# command that `make` finally runs (`make demo ARGS=--json` prints one JSON document and nothing else).
say() { printf '>> %s\n' "$*" >&2; }
die() { printf '!! %s\n' "$*" >&2; exit 1; }
is_root() { [ "$(id -u)" -eq 0 ]; }
has() { command -v "$1" >/dev/null 2>&1; }

# apt_install PACKAGE...: installs without questions and without starting a daemon. Fails where it cannot.
apt_install() {
    is_root && has apt-get || return 1
    local policy=/usr/sbin/policy-rc.d ours=no status=0
    # policy-rc.d is how Debian is told not to start what it installs: the tests start private instances of their own.
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && ours=yes
    fi
    {
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
            { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }
    } >&2 </dev/null || status=$?
    [ "$ours" = no ] || rm -f "$policy"
    return "$status"
}

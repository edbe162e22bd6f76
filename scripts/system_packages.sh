#!/bin/sh
# Install Debian packages that are missing, where that is possible.
#
#   sh scripts/system_packages.sh [--required] PACKAGE...
#
# As root on Debian or Ubuntu it installs them through apt. Otherwise it says which are
# missing; tests that need them skip (under CI=true they fail), unless --required is given.
set -eu

required=no
if [ "${1:-}" = "--required" ]; then
    required=yes
    shift
fi

is_installed() {
    case "$1" in
    chromium) command -v chromium >/dev/null 2>&1 ;;
    prometheus) command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1 ;;
    nginx-light) command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] ;;
    redis-server) command -v redis-server >/dev/null 2>&1 ;;
    prometheus-alertmanager)
        command -v prometheus-alertmanager >/dev/null 2>&1 || command -v alertmanager >/dev/null 2>&1
        ;;
    *) dpkg -s "$1" >/dev/null 2>&1 ;;
    esac
}

list_missing() {
    for package in "$@"; do
        is_installed "$package" || printf '%s ' "$package"
    done
}

missing=$(list_missing "$@")
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Debian packages: $missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    # Services must not start: the tests run their own on free ports.
    policy=/usr/sbin/policy-rc.d
    made_policy=no
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made_policy=yes
    fi
    # shellcheck disable=SC2086  # one word per package
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null || true
    [ "$made_policy" = yes ] && rm -f "$policy"
    missing=$(list_missing "$@")
    [ -z "$missing" ] && exit 0
fi

echo "missing Debian packages: $missing" >&2
echo "install them as root: apt-get install --no-install-recommends $missing" >&2
[ "$required" = yes ] && exit 1
echo "tests that need them are skipped (under CI=true they fail)" >&2
exit 0

#!/bin/sh
# Make .venv with the project (editable) and the named extras in it.
#
#   sh scripts/setup.sh EXTRA...
#
# PYTHON chooses the interpreter and VENV the folder. Where pip looks for packages is the
# user's own pip configuration. A second run with nothing changed only compares a hash.
set -eu

cd "$(dirname "$0")/.."
VENV="${VENV:-.venv}"
extras=$(echo "$*" | tr ' ' ',')

say() { echo "fuseboard setup: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_recent "$PYTHON" || fail "PYTHON=$PYTHON does not run Python 3.11 or newer"
        command -v "$PYTHON"
        return
    fi
    # Every match in PATH is tried: the first may be a version manager's shim that
    # is not set up, with Debian's Python behind it.
    for name in python3.11 python3; do
        old_ifs=$IFS
        IFS=:
        for folder in $PATH; do
            if [ -x "$folder/$name" ] && is_recent "$folder/$name"; then
                echo "$folder/$name"
                return
            fi
        done
        IFS=$old_ifs
    done
    fail "no Python 3.11 or newer found. Install one (Debian: apt-get install python3)" \
        "or name it: make PYTHON=/path/to/python3.11 ..."
}

ensure_venv_module() {
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "this Python lacks ensurepip; installing $version"
        sh scripts/system_packages.sh --required "$version" && return
    fi
    fail "this Python ($python) cannot make virtual environments: install the package" \
        "$version (apt-get install $version), or name another: make PYTHON=..."
}

hash_inputs() {
    {
        cat pyproject.toml constraints.txt
        "$python" -VV
        pwd
    } | cksum | tr -d ' \t'
}

python=$(find_python)
stamp="$VENV/.fuseboard-setup"
wanted=$(hash_inputs)

# `dev` holds every other extra, so it satisfies them all.
if [ -x "$VENV/bin/fuseboard" ] && [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "$wanted" ]; then
    installed=$(sed -n 2p "$stamp")
    if [ "$installed" = "$extras" ] || [ "$installed" = "dev" ]; then
        exit 0
    fi
fi

ensure_venv_module
if [ "$("$VENV/bin/python" -VV 2>/dev/null || echo none)" != "$("$python" -VV)" ]; then
    rm -rf "$VENV"
    say "making $VENV with $("$python" -V) ($python)"
    "$python" -m venv "$VENV"
fi
rm -f "$stamp"
say "installing fuseboard[$extras] (a few minutes the first time)"
"$VENV/bin/python" -m pip install -qq --disable-pip-version-check \
    -c constraints.txt -e ".[$extras]" ||
    fail "pip could not install the dependencies; its message is above." \
        "Check the network and your pip configuration (pip config list), then run make again"
printf '%s\n%s\n' "$wanted" "$extras" >"$stamp"

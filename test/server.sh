#!/bin/sh
# Runs a server with simulated locks until it is stopped, and prints the settings that a shell needs to use it. It keeps its
# data in a separate directory and ignores the shell's DEVICEACCESS_ variables, which may belong to an installed server. The
# next start has the same locks, and the same key works.
set -eu
cd "$(dirname "$0")/.."
for name in $(env | sed -n 's/^\(DEVICEACCESS_[A-Z_]*\)=.*/\1/p'); do
  [ "$name" = DEVICEACCESS_TEST_RUN_MAIN ] || unset "$name" # makes a test binary act as the server
done
server=${MAKE_SERVER_PROGRAM:-bin/deviceaccess-server}
state=${XDG_STATE_HOME:-$HOME/.local/state}
[ "$(id -u)" != 0 ] || state=/var/lib # PostgreSQL, which does not run as root, cannot enter root's home
DEVICEACCESS_DATA_DIR=${MAKE_SERVER_DATA_DIR:-$state/deviceaccess-make-server}
export DEVICEACCESS_DATA_DIR
ready=$(mktemp)
rm -f "$ready"
trap 'rm -f "$ready" "$ready.said"' EXIT
"$server" serve --sandbox --ready-file "$ready" "$@" &
running=$!
trap 'rm -f "$ready" "$ready.said"; kill -TERM $running 2>/dev/null || true' EXIT
trap 'kill -TERM $running 2>/dev/null; wait $running; exit 0' INT TERM
while [ ! -s "$ready" ]; do
  kill -0 $running 2>/dev/null || { wait $running; exit 1; }
  sleep 0.1
done
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$ready"; }
workspace=$(field workspace_id)
# The key of the ready file is valid until the next start writes another. This one stays valid.
keys=$DEVICEACCESS_DATA_DIR/make-server.key
key=$(sed -n "s/^$workspace //p" "$keys" 2>/dev/null || true)
if [ -z "$key" ]; then
  key=$("$server" keys create --name 'make server' --workspace "$workspace" --log-level error 2> "$ready.said") || { cat "$ready.said" >&2; exit 1; }
  (umask 077 && echo "$workspace $key" > "$keys")
fi
cat <<END

The server runs with simulated locks. In another shell:

  export DEVICEACCESS_ENDPOINT=$(field url)
  export DEVICEACCESS_API_KEY=$key

Then, for example:

  curl -s -X POST "\$DEVICEACCESS_ENDPOINT/devices/list" -H "Authorization: Bearer \$DEVICEACCESS_API_KEY" -d '{}' -H 'Content-Type: application/json'

Its data is in $DEVICEACCESS_DATA_DIR. The next start has the same locks, codes, and key.
To start over, stop the server and remove that directory: rm -r '$DEVICEACCESS_DATA_DIR'
Pass it to commands as --data-dir, such as bin/deviceaccess-server webhooks list --data-dir '$DEVICEACCESS_DATA_DIR'

Stop it with Ctrl-C.
END
wait $running

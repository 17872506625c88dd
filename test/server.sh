#!/bin/sh
# Runs a server with simulated locks until it is stopped, and prints what a shell needs to use it.
set -eu
cd "$(dirname "$0")/.."
ready=$(mktemp)
rm -f "$ready"
trap 'rm -f "$ready"' EXIT
bin/deviceaccess-server serve --sandbox --ready-file "$ready" "$@" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server; rm -f "$ready"; exit 0' INT TERM
while [ ! -s "$ready" ]; do
  kill -0 $server 2>/dev/null || { wait $server; exit 1; }
  sleep 0.1
done
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$ready"; }
cat <<EOF

The server runs with simulated locks. In another shell:

  export DEVICEACCESS_ENDPOINT=$(field url)
  export DEVICEACCESS_API_KEY=$(field api_key)

Then, for example:

  curl -s -X POST "\$DEVICEACCESS_ENDPOINT/devices/list" -H "Authorization: Bearer \$DEVICEACCESS_API_KEY" -d '{}' -H 'Content-Type: application/json'

Stop it with Ctrl-C.
EOF
wait $server

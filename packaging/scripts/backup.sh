#!/bin/sh
# Writes a backup of the private database to a directory, restores it to a temporary directory to verify it, records the
# time for the metrics, and deletes the oldest backups. A backup without the suffix .unverified is complete, recovers, and fits the master key.
#
#   backup DIRECTORY
#
# KEEP is the number of verified backups to keep; the default is 14.
set -eu
dir=${1:?usage: backup DIRECTORY}
keep=${KEEP:-14}
server=deviceaccess-server
umask 077

name=$dir/deviceaccess-$(date -u +%Y-%m-%dT%H%M%SZ).tar.gz
scratch=$(mktemp -d "$dir/.verify-XXXXXX")
chmod 711 "$scratch"
trap 'rm -rf "$scratch" "$name.unverified"' EXIT
trap 'exit 1' HUP INT TERM
# left by runs that were killed
find "$dir" -maxdepth 1 \( -name '.verify-*' -o -name '.*.incomplete-*' -o -name '*.unverified' \) -mmin +1440 \
	-exec rm -rf {} +

"$server" backup --no-record "$name.unverified"
# If root runs the script, the database runs as another user, which must enter the directories of the restore.
(umask 022 && "$server" restore --quiet --data-dir "$scratch/data" "$name.unverified" >/dev/null)
mv "$name.unverified" "$name"
echo "Verified $name: it restores, and the master key opens it."
failed=0
"$server" backup --record || failed=$?

find "$dir" -maxdepth 1 -name 'deviceaccess-*.tar.gz' | sort -r | tail -n "+$((keep + 1))" | while read -r old; do
	rm -f "$old"
	echo "Deleted $old: the newest $keep backups stay."
done
exit "$failed"

#!/bin/sh
# Runs after the installation and after each upgrade: "configure OLD" from dpkg, 1 or 2 from rpm.
set -e
case "$1" in
configure | 1 | 2) ;;
*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers deviceaccess.conf
elif ! getent passwd deviceaccess >/dev/null; then
	groupadd --system deviceaccess
	useradd --system --gid deviceaccess --home-dir /var/lib/deviceaccess --no-create-home \
		--shell /usr/sbin/nologin deviceaccess
fi
for dir in /var/lib/deviceaccess /var/backups/deviceaccess; do
	[ -e "$dir" ] || install -d -o deviceaccess -g deviceaccess -m 0700 "$dir"
done

# The key decrypts PINs and secrets. It is created once, and never replaced. Data from before the package has its own.
key=/etc/deviceaccess/master-key
if [ ! -e "$key" ] && [ -e /var/lib/deviceaccess/master.key ]; then
	(umask 077 && cat /var/lib/deviceaccess/master.key >"$key.new")
	mv "$key.new" "$key"
fi
created=
if [ ! -e "$key" ]; then
	(umask 077 && head -c 32 /dev/urandom | base64 >"$key.new")
	sync "$key.new"
	mv "$key.new" "$key"
	created=1
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	systemctl try-restart deviceaccess-server.service || true
fi
if [ -n "$created" ]; then
	cat <<'END'
deviceaccess-server: created the master key /etc/deviceaccess/master-key.
Copy it to a safe place now: without it, neither the database nor a backup can be read.
Set what you need in /etc/deviceaccess/config.yaml. Then start the server and its backups:
  systemctl enable --now deviceaccess-server.service deviceaccess-server-backup.timer
END
fi

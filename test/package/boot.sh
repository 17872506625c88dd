#!/bin/sh
# Boots systemd as the first process of a Debian tree, in namespaces of its own. It shares only the network with this
# machine. systemd is the child of this process. When this process ends, all of them end.
#
#   boot.sh ROOT
set -eu
root=$1

# The cgroups of the tree are below one of its own.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	kind=cgroup2 options=rw place=/sys/fs/cgroup
else
	kind=cgroup options=none,name=systemd place=/sys/fs/cgroup/systemd
fi
mkdir -p "$place/deviceaccess-test-$$"
echo $$ >"$place/deviceaccess-test-$$/cgroup.procs"
export root kind options

exec unshare --mount --propagation private --pid --fork --kill-child --cgroup --uts --ipc sh -euc '
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
if [ $kind = cgroup2 ]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	mount -t tmpfs tmpfs sys/fs/cgroup
	mkdir sys/fs/cgroup/systemd
	mount -t cgroup -o "$options" cgroup sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
	touch dev/$device
	mount --bind /dev/$device dev/$device
done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mkdir -p mnt/old
pivot_root . mnt/old
umount -l /mnt/old
mount --make-rshared / # systemd mounts credentials in a namespace of its own
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null --show-status=no
'

#!/bin/sh
# The first process of the virtual machine: two devices of soft-RoCE on the two ends of a cable, then the commands of /tasks/run.
# Lines that begin with @ are for the one that started the machine.
export PATH=/usr/sbin:/usr/bin HOME=/tmp
mount -t devtmpfs devtmpfs /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
chmod 1777 /tmp /dev/shm
# The first serial line has the kernel's words and ours, the second one those of the commands.
exec </dev/null >/dev/console 2>&1
stty -F /dev/ttyS1 raw -echo

finish() {
    echo "@machine $*" >/dev/ttyS1
    sync
    reboot -f
}

while read -r module; do
    insmod "/modules/$module" || finish "cannot load $module"
done </modules/order
ulimit -c 0
ulimit -l unlimited
ip link set lo up

# A cable with both ends in one network: what one end sends to the other's address must not take the short way inside the kernel. So
# addresses are looked up as the machine's own only for what came in by the cable, and table 7 leads what goes out to it.
ip link add left type veth peer name right
for end in all left right; do
    echo 1 >"/proc/sys/net/ipv4/conf/$end/accept_local"
    echo 0 >"/proc/sys/net/ipv4/conf/$end/rp_filter"
done
# Each end answers for its own address only.
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce
ip address add 10.99.0.1/32 dev left
ip address add 10.99.0.2/32 dev right
# Long packets: fewer of them, because the queue at either end holds a thousand.
ip link set left mtu 9000
ip link set right mtu 9000
ip link set left up
ip link set right up
ip rule add priority 1 iif left lookup local
ip rule add priority 1 iif right lookup local
ip rule add priority 2 to 127.0.0.0/8 lookup local
ip rule add priority 3 from 10.99.0.1 to 10.99.0.1 lookup local
ip rule add priority 3 from 10.99.0.2 to 10.99.0.2 lookup local
ip rule add priority 4 lookup 7
ip rule add priority 5 lookup local
ip rule delete priority 0
ip route add 10.99.0.2/32 dev left src 10.99.0.1 table 7
ip route add 10.99.0.1/32 dev right src 10.99.0.2 table 7
rdma link add rxe0 type rxe netdev left || finish "no soft-RoCE on the cable's left end"
rdma link add rxe1 type rxe netdev right || finish "no soft-RoCE on the cable's right end"

# The GID of an address is there when the link is up.
for device in rxe0:0a63:0001 rxe1:0a63:0002; do
    turns=0
    until grep -q "ffff:${device#*:}" "/sys/class/infiniband/${device%%:*}/ports/1/gids/"* 2>/dev/null; do
        turns=$((turns + 1))
        [ "$turns" -lt 400 ] || finish "${device%%:*} has no address"
        sleep 0.05
    done
done

cd /tasks || finish "nothing to do"
sh ./run >/dev/ttyS1 2>&1
finish done

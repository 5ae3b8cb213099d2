# Three machines on one: network namespaces m1 to m3 on a bridge, with the addresses 127.77.0.1 to 3.
# Run it by unshare -n -m sh; what follows is run in m1, with the bridge's process in BRIDGE.
set -eu
mount -t tmpfs none /run
mkdir -p /run/netns
ip link add br0 type bridge
ip link set br0 up
for i in 1 2 3; do
	ip netns add m$i
	ip link add v$i type veth peer name eth0 netns m$i
	ip link set v$i master br0 up
	ip netns exec m$i sh -c '
		ip link set lo up
		echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
		echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet
		ip addr del 127.0.0.1/8 dev lo
		ip addr add 127.0.0.1/32 dev lo
		ip addr add 127.77.0.'$i'/24 dev eth0
		ip link set eth0 up'
done
export BRIDGE=$$
ip netns exec m1 "$@"

package publicip

import (
	"net/netip"
	"testing"
)

// TestIs: which addresses are those of the internet.
func TestIs(t *testing.T) {
	for _, at := range []string{"142.250.1.1", "17.57.144.1", "2607:f8b0:4004::200e", "64:ff9b::8efa:101", "::ffff:142.250.1.1"} {
		if !Is(netip.MustParseAddr(at)) {
			t.Errorf("%s is refused", at)
		}
	}
	for _, at := range []string{
		"127.0.0.1", "127.1.2.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.0.192", "198.18.0.1",
		"224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1", "2001:db8::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001::1",
	} {
		if Is(netip.MustParseAddr(at)) {
			t.Errorf("%s is taken for one of the internet", at)
		}
	}
}

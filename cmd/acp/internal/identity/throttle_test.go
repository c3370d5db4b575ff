package identity

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func addr(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// TestThrottle: ten wrong attempts at once, then one every six seconds, for each address by itself.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th throttle
		a, b := addr(1), addr(2)
		for i := range throttleBurst {
			if w := th.wait(a); w > 0 {
				t.Fatalf("attempt %d waits %v", i, w)
			}
			th.failed(a, [32]byte{})
		}
		if w := th.wait(a); w != throttleEvery {
			t.Error(w)
		}
		if w := th.wait(b); w > 0 {
			t.Error("another address waits", w)
		}
		time.Sleep(throttleEvery)
		if w := th.wait(a); w > 0 {
			t.Error(w)
		}
		th.failed(a, [32]byte{})
		if w := th.wait(a); w != throttleEvery {
			t.Error(w)
		}
		time.Sleep(time.Hour) // all is forgotten, and no more than that
		for range throttleBurst {
			if th.wait(a) > 0 {
				t.Error("waits")
			}
			th.failed(a, [32]byte{})
		}
		if w := th.wait(a); w != throttleEvery {
			t.Error(w)
		}
	})
}

// TestThrottleRepeated: a client that repeats its old token is counted once.
func TestThrottleRepeated(t *testing.T) {
	var th throttle
	old, other := [32]byte{1}, [32]byte{2}
	for range 3 * throttleBurst {
		th.failed(addr(1), old)
	}
	if th.wait(addr(1)) > 0 {
		t.Error("it waits")
	}
	for range throttleBurst { // alternating does not help who guesses
		th.failed(addr(1), other)
		th.failed(addr(1), old)
	}
	if th.wait(addr(1)) <= 0 {
		t.Error("it does not wait")
	}
}

// TestThrottleNetworks: what one machine can change of its address makes no difference.
func TestThrottleNetworks(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true}, {"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:1", true}, {"2001:db8::1%eth0", "2001:db8::1", true}, {"2001:db8::1", "2001:db8:0:1::1", false},
	} {
		if same := Network(netip.MustParseAddr(tt.a)) == Network(netip.MustParseAddr(tt.b)); same != tt.same {
			t.Errorf("%s, %s: %v", tt.a, tt.b, same)
		}
	}
	var th throttle
	th.failed(netip.Addr{}, [32]byte{}) // of a Unix socket
	if len(th.wrong) != 1 || th.wait(netip.Addr{}) > 0 {
		t.Error(th.wrong)
	}
}

// TestThrottleBound: a flood of addresses neither grows the table nor frees one that is throttled.
func TestThrottleBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var th throttle
		for range throttleBurst {
			th.failed(addr(1), [32]byte{})
		}
		for n := range uint32(2 * throttleTable) {
			th.failed(addr(n+2), [32]byte{})
		}
		if len(th.wrong) != throttleTable || th.wait(addr(1)) <= 0 {
			t.Error(len(th.wrong), th.wait(addr(1)))
		}
		if th.wait(addr(1<<31)) <= 0 {
			t.Error("those beyond the table are not throttled")
		}
		time.Sleep(24 * time.Hour)
		th.failed(addr(1<<31), [32]byte{})
		if len(th.wrong) != 1 || th.wait(addr(1<<31+1)) > 0 {
			t.Error(len(th.wrong))
		}
	})
}

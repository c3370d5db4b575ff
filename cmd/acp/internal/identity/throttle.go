package identity

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of a throttle.
const (
	throttleBurst = 10              // wrong attempts at once
	throttleEvery = 6 * time.Second // for each further one
	throttleTable = 4096            // addresses at the same time
)

// A throttle bounds the wrong attempts of each source address: ten at once, then one every six seconds.
// What is repeated counts once: nothing is guessed that way, and a client that tries its old token again
// and again must not keep others behind its address out.
// It remembers 4,096 addresses; those beyond share one account, so that a flood of addresses neither
// grows the table nor frees an address that was throttled. The zero value is ready for use.
type throttle struct {
	mu     sync.Mutex
	wrong  map[netip.Prefix]account
	shared account
}

// An account of wrong attempts. At until all of them are forgotten.
type account struct {
	until time.Time
	last  [32]byte // the hash of the last wrong attempt
}

func (a account) wait(now time.Time) time.Duration {
	return a.until.Add(-throttleEvery * (throttleBurst - 1)).Sub(now)
}

func (a account) failed(now time.Time, attempt [32]byte) account {
	if a.last == attempt && attempt != [32]byte{} {
		return a
	}
	if a.until.Before(now) {
		a.until = now
	}
	return account{a.until.Add(throttleEvery), attempt}
}

// Network returns what is one source: an IPv4 address, or an IPv6 network of 64 bits, which a single
// machine has for itself.
func Network(source netip.Addr) netip.Prefix {
	source = source.Unmap().WithZone("")
	bits := source.BitLen()
	if source.Is6() {
		bits = 64
	}
	p, _ := source.Prefix(bits) // the zero Prefix for the zero Addr
	return p
}

// wait returns how long a source must wait before its next attempt; 0 or less is not at all.
func (t *throttle) wait(source netip.Addr) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if a, ok := t.wrong[Network(source)]; ok {
		return a.wait(now)
	}
	if len(t.wrong) >= throttleTable {
		return t.shared.wait(now)
	}
	return 0
}

// failed counts a wrong attempt, whose hash is given; zero for one that counts in any case.
func (t *throttle) failed(source netip.Addr, attempt [32]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, key := time.Now(), Network(source)
	if t.wrong == nil {
		t.wrong = make(map[netip.Prefix]account)
	}
	if _, ok := t.wrong[key]; !ok && len(t.wrong) >= throttleTable {
		for k, a := range t.wrong {
			if !a.until.After(now) {
				delete(t.wrong, k)
			}
		}
		if len(t.wrong) >= throttleTable {
			t.shared = t.shared.failed(now, attempt)
			return
		}
	}
	t.wrong[key] = t.wrong[key].failed(now, attempt)
}

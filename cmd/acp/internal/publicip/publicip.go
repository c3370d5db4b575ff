// Package publicip tells the addresses of the internet from those of networks of one's own, for what must reach no other.
package publicip

import (
	"net/netip"
	"slices"
)

// private are addresses that are not of the internet, beside those of package netip.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("::/96"),
}

// translated has the addresses of IPv4 in their last four bytes, for networks that have IPv6 alone.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// Is reports whether an address is one of the internet. An address of IPv4 that is translated into one of IPv6 counts as
// what it is.
func Is(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if translated.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(a) })
}

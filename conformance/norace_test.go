//go:build !race

package conformance

const (
	sampled = 60 // one in so many rules meets the fixture of another
	tried   = 1  // one in so many fixtures is tried
)

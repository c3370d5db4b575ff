//go:build race

package conformance

const (
	sampled = 1000
	tried   = 6
)

//go:build !race

package conformance

const sampled = 60

//go:build race

package registry_test

// The race detector has little to look for in a codec, and makes it slow.
const perType = 20

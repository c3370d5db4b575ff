//go:build !race

package registry_test

const perType = 200

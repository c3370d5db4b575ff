//go:build !unix

package proxies

// nonblock is for pipes, which have no names here.
const nonblock = 0

//go:build !linux

package real

import "errors"

// withoutNetwork is for systems with network namespaces.
func withoutNetwork() (code int, err error) { return 0, errors.ErrUnsupported }

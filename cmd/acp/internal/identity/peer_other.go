//go:build !linux && !darwin

package identity

import "errors"

func peerOfFD(int) (Peer, error) { return Peer{}, errors.ErrUnsupported }

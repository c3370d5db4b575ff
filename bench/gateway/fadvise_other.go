//go:build !linux

package main

import "os"

func fadvise(*os.File) error { return nil }

// Package source knows what the page is made of.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Sum returns the hash of everything that decides what the bundle is: the sources, the packages that the lock file
// names, and the program that makes the bundle of them. web is the folder of package web.
func Sum(web fs.FS) (string, error) {
	var names []string
	for _, root := range []string{"src", "bundle", "package.json", "package-lock.json"} {
		err := fs.WalkDir(web, root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, "_test.go") {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		data, err := fs.ReadFile(web, name)
		if err != nil {
			return "", err
		}
		// Independent of how a checkout ends lines.
		text := strings.ReplaceAll(string(data), "\r\n", "\n")
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

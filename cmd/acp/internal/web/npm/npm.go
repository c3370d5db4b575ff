// Package npm fetches the packages that a lock file of npm names, without npm. What it has fetched is what the lock
// file says, to the byte, or it is not there.
package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp/internal/sleep"
)

// Bounds of a package.
const (
	maxArchive = 32 << 20  // bytes, compressed
	maxFiles   = 10_000    // in a package
	maxContent = 128 << 20 // bytes of all files of a package
	attempts   = 3
)

// A Package is one that a lock file names.
type Package struct {
	Path      string // where it is: node_modules/marked
	Version   string
	Licence   string
	Integrity string // sha512-…
}

// Read returns the packages of a lock file that programs need at run time, in the order of their paths. Those for
// development are left out, and so are optional ones.
func Read(lock []byte) ([]Package, error) {
	var file struct {
		Version  int `json:"lockfileVersion"`
		Packages map[string]struct {
			Version   string `json:"version"`
			Licence   string `json:"license"`
			Integrity string `json:"integrity"`
			Dev       bool   `json:"dev"`
			Optional  bool   `json:"optional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(lock, &file); err != nil {
		return nil, fmt.Errorf("this is not a lock file of npm: %w", err)
	}
	if file.Version != 3 {
		return nil, fmt.Errorf("the lock file has version %d, not 3", file.Version)
	}
	var list []Package
	for _, at := range slices.Sorted(maps.Keys(file.Packages)) {
		p := file.Packages[at]
		if at == "" || p.Dev || p.Optional {
			continue
		}
		if !strings.HasPrefix(at, "node_modules/") || !filepath.IsLocal(filepath.FromSlash(at)) {
			return nil, fmt.Errorf("the lock file has a package at %q", at)
		}
		if !strings.HasPrefix(p.Integrity, "sha512-") || p.Version == "" {
			return nil, fmt.Errorf("the lock file does not say what %s is", at)
		}
		list = append(list, Package{at, p.Version, p.Licence, p.Integrity})
	}
	return list, nil
}

// Registry is the one that npm uses by default.
const Registry = "https://registry.npmjs.org"

// Name returns what the package is called: marked, @preact/signals.
func (p *Package) Name() string {
	return p.Path[strings.LastIndex(p.Path, "node_modules/")+len("node_modules/"):]
}

// URL returns where a registry has the archive of the package.
func (p *Package) URL(registry string) string {
	name := p.Name()
	return strings.TrimSuffix(registry, "/") + "/" + name + "/-/" + path.Base(name) + "-" + p.Version + ".tgz"
}

// Have reports whether an earlier call of [Fetch] has put all packages below a directory.
func Have(packages []Package, dir string) bool {
	return !slices.ContainsFunc(packages, func(p Package) bool { return !p.isAt(filepath.Join(dir, filepath.FromSlash(p.Path))) })
}

// isAt reports whether the package was put at a path.
func (p *Package) isAt(path string) bool {
	said, err := os.ReadFile(path + markSuffix)
	return err == nil && string(said) == p.Integrity
}

// markSuffix ends the name of a file that says what is in the folder beside it.
const markSuffix = ".integrity"

// Fetch puts packages of a registry below a directory, which it makes. Those that an earlier call has put there are left
// as they are: the directory must belong to the caller. A package that cannot be had is tried three times.
func Fetch(ctx context.Context, client *http.Client, registry string, packages []Package, dir string) error {
	for _, p := range packages {
		at := filepath.Join(dir, filepath.FromSlash(p.Path))
		if p.isAt(at) {
			continue
		}
		if err := errors.Join(os.RemoveAll(at), os.MkdirAll(filepath.Dir(at), 0o755)); err != nil {
			return err
		}
		var err error
		for try := range attempts {
			if try > 0 {
				if !sleep.For(ctx, time.Duration(try)*time.Second) {
					break
				}
			}
			if err = p.fetch(ctx, client, registry, at); err == nil || errors.Is(err, errFinal) {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", p.Path, p.Version, err)
		}
		if err := os.WriteFile(at+markSuffix, []byte(p.Integrity), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// errFinal is what an error wraps that another try does not change.
var errFinal = errors.New("the package cannot be had")

// fetch puts a package at a path.
func (p *Package) fetch(ctx context.Context, client *http.Client, registry, at string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(registry), nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s answers %s", errFinal, p.URL(registry), res.Status)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s", p.URL(registry), res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxArchive+1))
	if err != nil {
		return err
	}
	if len(data) > maxArchive {
		return fmt.Errorf("the archive has more than %d bytes", maxArchive)
	}
	sum := sha512.Sum512(data)
	if "sha512-"+base64.StdEncoding.EncodeToString(sum[:]) != p.Integrity {
		return fmt.Errorf("%w: the archive is not the one that the lock file names", errFinal)
	}
	part := at + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := unpack(data, part); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errFinal, err), os.RemoveAll(part))
	}
	return os.Rename(part, at)
}

// unpack writes the files of an archive. Their paths begin with a folder whose name says nothing.
func unpack(data []byte, dir string) error {
	z, err := gzip.NewReader(strings.NewReader(string(data)))
	if err != nil {
		return err
	}
	r, left := tar.NewReader(z), int64(maxContent)
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n >= maxFiles:
			return fmt.Errorf("the archive has more than %d files", maxFiles)
		case h.Typeflag != tar.TypeReg: // folders come with their files; nothing else is in a package
			continue
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the archive has a file %q", h.Name)
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		wrote, err := io.Copy(f, io.LimitReader(r, left+1))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if left -= wrote; left < 0 {
			return fmt.Errorf("the archive has more than %d bytes in its files", maxContent)
		}
	}
}

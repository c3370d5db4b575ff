package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sdkPackage is the npm package that the schemas are taken from.
const sdkPackage = "@agentclientprotocol/sdk"

// Bounds of what is read of a package. That of version 2.4.0 has 9 MiB once unpacked, its largest schema 0.3 MiB.
const (
	maxManifest  = 4 << 20         // of the registry's answer
	maxTarball   = 16 << 20        // compressed
	maxUnpacked  = 64 << 20        // all of it
	maxSchema    = 8 << 20         // one file
	maxSchemas   = 32              // files
	fetchTimeout = 2 * time.Minute // for each request
)

// A release is what matters of a release of the npm package.
type release struct {
	name, version string            // of package.json; "" if it has none
	schemas       map[string][]byte // by path below schema, such as v1/schema.json
}

// isSchema reports whether a path below the directory schema is that of a schema.
func isSchema(name string) bool {
	ok, err := path.Match("v?/*.json", name)
	return err == nil && ok
}

// add takes a file of the package, named as below its root, if it matters.
func (r *release) add(name string, content io.Reader) error {
	schema, isBelow := strings.CutPrefix(name, "schema/")
	isBelow = isBelow && isSchema(schema)
	if !isBelow && name != "package.json" {
		return nil
	}
	data, err := readBounded(content, maxSchema)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !isBelow {
		var p struct{ Name, Version string }
		if err := json.Unmarshal(data, &p); err != nil {
			return fmt.Errorf("package.json: %w", err)
		}
		r.name, r.version = p.Name, p.Version
		return nil
	}
	if _, twice := r.schemas[schema]; twice {
		return fmt.Errorf("%s is there twice", name)
	}
	if len(r.schemas) == maxSchemas {
		return fmt.Errorf("there are more than %d schemas", maxSchemas)
	}
	if r.schemas == nil {
		r.schemas = map[string][]byte{}
	}
	r.schemas[schema] = data
	return nil
}

// readBounded reads all of r, which must not be longer than limit bytes.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("longer than %d MiB", limit>>20)
	}
	return data, err
}

// readTarball reads a package as npm packs it.
func readTarball(data []byte) (*release, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	all := &io.LimitedReader{R: z, N: maxUnpacked}
	r := new(release)
	for t := tar.NewReader(all); ; {
		h, err := t.Next()
		if err == io.EOF {
			return r, nil
		}
		if err != nil {
			if all.N <= 0 {
				err = fmt.Errorf("longer than %d MiB once unpacked", maxUnpacked>>20)
			}
			return nil, err
		}
		// Only these very names are looked at, so that others, such as ../package.json, cannot pass for them.
		name, ok := strings.CutPrefix(h.Name, "package/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := r.add(name, t); err != nil {
			return nil, err
		}
	}
}

// readPath reads a package that was packed by npm, or a directory: that of the package, or the one with its
// schemas.
func readPath(name string) (*release, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is neither a file nor a directory", name)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := readBounded(f, maxTarball)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r, err := readTarball(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return r, nil
	}
	dir, below := name, "schema"
	if _, err := os.Stat(filepath.Join(name, below)); err != nil {
		below = "."
	}
	root, err := os.OpenRoot(dir) // links do not lead out of it
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := new(release)
	paths, err := fs.Glob(root.FS(), path.Join(below, "v?/*.json"))
	if err != nil {
		return nil, err
	}
	for _, p := range append(paths, "package.json") {
		info, err := root.Stat(filepath.FromSlash(p))
		if errors.Is(err, fs.ErrNotExist) && p == "package.json" {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", p)
		}
		if err != nil {
			return nil, err
		}
		f, err := root.Open(filepath.FromSlash(p))
		if err != nil {
			return nil, err
		}
		if p != "package.json" && below == "." {
			p = "schema/" + p
		}
		err = r.add(p, f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

// npmRegistry returns the address of the registry, with a slash at its end.
func npmRegistry() (string, error) {
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if v := os.Getenv(name); v != "" {
			u, err := url.Parse(v)
			if err != nil || !isWeb(u) {
				return "", fmt.Errorf("%s is not an http or https address: %q", name, v)
			}
			return strings.TrimSuffix(v, "/") + "/", nil
		}
	}
	return "https://registry.npmjs.org/", nil
}

func isWeb(u *url.URL) bool { return (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" }

// fetchNewest downloads the newest release from the npm registry, and verifies it.
func fetchNewest(ctx context.Context) (*release, error) {
	registry, err := npmRegistry()
	if err != nil {
		return nil, err
	}
	data, err := download(ctx, registry+url.PathEscape(sdkPackage)+"/latest", maxManifest)
	if err != nil {
		return nil, err
	}
	var m struct {
		Name, Version string
		Dist          struct{ Tarball, Integrity string }
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("the answer of the registry: %w", err)
	}
	if m.Name != sdkPackage || m.Version == "" {
		return nil, fmt.Errorf("the registry answered with %q %q, not with a version of %s", m.Name, m.Version, sdkPackage)
	}
	u, err := url.Parse(m.Dist.Tarball)
	if err != nil || !isWeb(u) {
		return nil, fmt.Errorf("the registry names no http or https address of the package: %q", m.Dist.Tarball)
	}
	if data, err = download(ctx, u.String(), maxTarball); err != nil {
		return nil, err
	}
	if err := verify(data, m.Dist.Integrity); err != nil {
		return nil, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	r, err := readTarball(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	if r.name != m.Name || r.version != m.Version {
		return nil, fmt.Errorf("%s has %q %q, but the registry says %s %s",
			u.Redacted(), r.name, r.version, m.Name, m.Version)
	}
	return r, nil
}

// download gets what is at an address.
func download(ctx context.Context, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", req.URL.Redacted(), res.Status)
	}
	data, err := readBounded(res.Body, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.URL.Redacted(), err)
	}
	return data, nil
}

// verify compares data with its hashes as npm writes them. A SHA-512 must be among them; others do not count.
func verify(data []byte, integrity string) error {
	sum := sha512.Sum512(data)
	want := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	known := false
	for _, h := range strings.Fields(integrity) {
		h, _, _ = strings.Cut(h, "?") // options
		if h == want {
			return nil
		}
		known = known || strings.HasPrefix(h, "sha512-")
	}
	if !known {
		return fmt.Errorf("the registry has no SHA-512 of it, but %q", integrity)
	}
	return errors.New("it is not what the registry vouches for: its SHA-512 differs")
}

// compareVersions compares two versions of a package, a < b is negative. Of their pre-releases, which npm does
// not call newest, only the words are compared.
func compareVersions(a, b string) int {
	number := func(v string) (out [3]int, rest string) {
		v, rest, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
		_, _ = fmt.Sscanf(v, "%d.%d.%d", &out[0], &out[1], &out[2])
		return out, rest
	}
	x, xs := number(a)
	y, ys := number(b)
	if c := slices.Compare(x[:], y[:]); c != 0 {
		return c
	}
	switch {
	case xs == "" && ys != "":
		return 1
	case xs != "" && ys == "":
		return -1
	}
	return strings.Compare(xs, ys)
}

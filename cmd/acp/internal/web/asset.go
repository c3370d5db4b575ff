package web

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/web/assets"
)

// types are the media types of files; others are not served.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".txt":         "text/plain; charset=utf-8", // licences
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
}

// hashed are names that another content would not have.
var hashed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-[0-9A-Z]{8}\.(js|css)$`) })

// An asset is a file of the page.
type asset struct {
	kind       string // the media type
	caching    string
	isDocument bool // and not what one loads
	packed     bool // the file is stored compressed

	// Each is made when it is first asked for: a server whose page nobody opens keeps none of it.
	stored func() []byte
	tag    func() string // the hash of stored
}

// load returns the files by their paths, but not those of the page of a tap.
func load(from fs.FS) map[string]*asset {
	all := make(map[string]*asset)
	_ = fs.WalkDir(from, ".", func(file string, d fs.DirEntry, err error) error {
		name, packed := strings.CutSuffix(file, assets.Packed)
		kind, ok := types[path.Ext(name)]
		if err != nil || d.IsDir() || !ok || strings.HasPrefix(name, "tap.") {
			return err
		}
		a := &asset{kind: kind, caching: "no-cache", isDocument: path.Ext(name) == ".html", packed: packed}
		if hashed().MatchString(name) {
			a.caching = "public, max-age=31536000, immutable"
		}
		a.stored = sync.OnceValue(func() []byte {
			data, _ := fs.ReadFile(from, file) // which is in the program
			return data
		})
		a.tag = sync.OnceValue(func() string {
			sum := sha256.Sum256(a.stored())
			return hex.EncodeToString(sum[:16])
		})
		at := "/" + name
		if at == "/index.html" {
			at = "/"
		}
		all[at] = a
		return nil
	})
	return all
}

// serve answers GET and HEAD. A file that is stored compressed is decompressed for those who cannot: no browser of today.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	h, data, tag := w.Header(), a.stored(), `"`+a.tag()+`"`
	zipped := a.packed && acceptsGzip(r.Header)
	if a.packed {
		h.Set("Vary", "Accept-Encoding")
	}
	if zipped { // which is another representation, with another tag
		tag = `"` + a.tag() + `-gzip"`
	}
	h.Set("Cache-Control", a.caching)
	h.Set("ETag", tag)
	if matches(r.Header, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	switch {
	case zipped:
		h.Set("Content-Encoding", "gzip")
	case a.packed:
		var err error
		if data, err = assets.Unpack(data); err != nil {
			http.Error(w, "the file is broken: "+err.Error(), http.StatusInternalServerError)
			return
		}
	}
	h.Set("Content-Type", a.kind)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // the client may have left
	}
}

// matches reports whether a client has what has the tag.
func matches(h http.Header, tag string) bool {
	for _, field := range h.Values("If-None-Match") {
		for one := range strings.SplitSeq(field, ",") { // none of our tags has a comma in it
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reports whether a client can decompress: RFC 9110, section 12.5.3.
func acceptsGzip(h http.Header) bool {
	accepts := false
	for _, field := range h.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(field, ",") {
			name, params, _ := strings.Cut(one, ";")
			key, value, _ := strings.Cut(params, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			refuses := strings.EqualFold(strings.TrimSpace(key), "q") && (err != nil || !(q > 0))
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				return !refuses
			case "*":
				accepts = !refuses
			}
		}
	}
	return accepts
}

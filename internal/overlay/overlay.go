// Package overlay adds to the protocol's schemas what is newer than they are.
//
// The files of schema are copies of the official ones. What is known of later versions, and
// is not in them, is in schema/overlay: each file there says where it comes from and adds
// definitions, properties, union variants and enum values to the unstable schema of a
// version, or promotes what the unstable schema has to the stable one. It only adds. What the
// official schema has by now is an error, so that an overlay shrinks to nothing.
package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir is the directory of the overlays beside the schemas.
const Dir = "overlay"

// maxFile bounds one overlay.
const maxFile = 1 << 20

// A File is one overlay.
type File struct {
	Name      string   `json:"-"` // as in schema/overlay
	About     string   `json:"about"`
	Seen      string   `json:"seen"`      // the version in which it was seen
	Certainty string   `json:"certainty"` // "read", or "inferred": then the shape may be wrong
	V1        *Version `json:"v1"`
	V2        *Version `json:"v2"`
	Sum       string   `json:"-"` // SHA-256 of the file
}

// A Version is what a file says of one version of the protocol.
type Version struct {
	Unstable Additions `json:"unstable"`
	Promote  []string  `json:"promote"` // "Type", "Type.property", "Type=tag"
}

// Additions are added to an unstable schema, in the order in which they are given.
type Additions struct {
	Defs     object `json:"defs"`     // by name
	Props    object `json:"props"`    // by "Type.property"
	Variants object `json:"variants"` // a list for each union
	Values   object `json:"values"`   // a list of strings for each enum
}

// An object is a JSON object whose order counts.
type object []Member

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object) UnmarshalJSON(data []byte) (err error) {
	*o, err = Members(data)
	return err
}

// A Set is the schemas of a directory with the overlays beside them.
type Set struct {
	dir   string
	Files []File // sorted by name
}

// Read reads the overlays of the directory that holds the schemas. There may be none.
func Read(schemas string) (*Set, error) {
	s := &Set{dir: schemas}
	names, err := os.ReadDir(filepath.Join(schemas, Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range names { // sorted
		if !strings.HasSuffix(e.Name(), ".json") {
			return nil, fmt.Errorf("%s is no overlay: its name must end in .json", filepath.Join(schemas, Dir, e.Name()))
		}
		f, err := read(filepath.Join(schemas, Dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(schemas, Dir, e.Name()), err)
		}
		s.Files = append(s.Files, f)
	}
	return s, nil
}

func read(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if info.Size() > maxFile {
		return File{}, fmt.Errorf("larger than %d bytes", maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	f := File{Name: filepath.Base(path), Sum: fmt.Sprintf("%x", sha256.Sum256(data))}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return File{}, err
	}
	if dec.More() {
		return File{}, errors.New("more follows the object")
	}
	switch {
	case f.About == "" || f.Seen == "":
		return File{}, errors.New("about and seen must say what it is and where it was seen")
	case f.Certainty != "read" && f.Certainty != "inferred":
		return File{}, fmt.Errorf("certainty is %q, not read or inferred", f.Certainty)
	}
	return f, nil
}

// Of returns what the file says of a version ("v1", "v2"); nil for nothing.
func (f *File) Of(version string) *Version {
	if version == "v1" {
		return f.V1
	}
	return f.V2
}

// Schemas returns the stable and the unstable schema of a version ("v1", "v2") with what the
// overlays add.
func (s *Set) Schemas(version string) (stable, unstable []byte, err error) {
	var docs [2]*document
	for i, name := range []string{version + ".json", version + ".unstable.json"} {
		path := filepath.Join(s.dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		if docs[i], err = parse(raw); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var errs []error
	for _, f := range s.Files {
		if v := f.Of(version); v != nil {
			errs = append(errs, v.apply(docs[0], docs[1], f.where(version))...)
		}
	}
	return docs[0].bytes(), docs[1].bytes(), errors.Join(errs...)
}

func (f *File) where(version string) string {
	return Dir + "/" + f.Name + ": " + version
}

// An EntryError says why an entry of a file cannot be added to a schema.
type EntryError struct {
	Entry string // such as "overlay/speed.json: v1.unstable.values.SessionConfigOptionCategory"
	Err   error
}

// Error begins with the entry.
func (e *EntryError) Error() string { return e.Entry + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *EntryError) Unwrap() error { return e.Err }

// Obsolete reports whether all that the entry adds is in the schema as it is, so that it can be
// deleted.
func (e *EntryError) Obsolete() bool {
	if list, ok := e.Err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(list.Unwrap(), func(err error) bool { return !errors.Is(err, errTaken) })
	}
	return errors.Is(e.Err, errTaken)
}

// Against returns which entries do not fit other schemas of a version ("v1", "v2"): those that
// have what the entry adds, or lack what it adds to.
func (s *Set) Against(version string, stable, unstable []byte) ([]*EntryError, error) {
	var docs [2]*document
	for i, raw := range [][]byte{stable, unstable} {
		var err error
		if docs[i], err = parse(raw); err != nil {
			return nil, err
		}
	}
	var out []*EntryError
	for _, f := range s.Files {
		v := f.Of(version)
		if v == nil {
			continue
		}
		for _, err := range v.apply(docs[0], docs[1], f.where(version)) {
			out = append(out, err.(*EntryError)) // apply returns no others
		}
	}
	return out, nil
}

// Schema returns one schema with what the overlays add, by the name of its file: "v1.json",
// "v1.unstable.json" and so on.
func (s *Set) Schema(file string) ([]byte, error) {
	version, rest, _ := strings.Cut(file, ".")
	stable, unstable, err := s.Schemas(version)
	if strings.HasPrefix(rest, "unstable") {
		return unstable, err
	}
	return stable, err
}

// Inferred returns what the files of certainty "inferred" add to a version, in the spelling of
// [Version.Promote]. What they say of methods is named by its definitions.
func (s *Set) Inferred(version string) []string {
	var out []string
	for _, f := range s.Files {
		v := f.Of(version)
		if v == nil || f.Certainty != "inferred" {
			continue
		}
		for _, o := range []object{v.Unstable.Defs, v.Unstable.Props} {
			for _, m := range o {
				out = append(out, m.Name)
			}
		}
		for _, m := range v.Unstable.Variants {
			var alts []json.RawMessage
			if json.Unmarshal(m.Value, &alts) != nil {
				continue
			}
			for _, a := range alts {
				if _, tag := constant(a); tag != "" {
					out = append(out, m.Name+"="+tag)
				}
			}
		}
		for _, m := range v.Unstable.Values {
			var values []string
			if json.Unmarshal(m.Value, &values) != nil {
				continue
			}
			for _, x := range values {
				out = append(out, m.Name+"="+x)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Source returns the lines of schema/SOURCE that say which overlays there are.
func (s *Set) Source() string {
	var b strings.Builder
	for _, f := range s.Files {
		fmt.Fprintf(&b, "sha256 %s %s/%s\n", f.Sum, Dir, f.Name)
	}
	return b.String()
}

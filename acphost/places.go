package acphost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// maxPlaces bounds the paths of a request that links are followed of; where the
// others lead is not known.
const maxPlaces = 1024

// places are the paths that rules look at for one request, each followed once.
type places struct {
	policy *Policy
	real   map[string]string // "" if it is not known
	dirs   map[*CommandPart][]pathShape
	work   int // comparisons of what may be a path
}

// A followed is a path as rules look at it, absolute and with slashes.
type followed struct {
	path, cwd   string
	real, inCwd string // with links followed; real is "" if it is not known
}

// follow returns where an absolute path leads to, with slashes, or "".
func (at *places) follow(path string) string {
	if path == "" {
		return ""
	}
	if real, ok := at.real[path]; ok {
		return real
	}
	if len(at.real) >= maxPlaces {
		return ""
	}
	if at.real == nil {
		at.real = map[string]string{}
	}
	resolve := at.policy.Resolve
	if resolve == nil {
		resolve = ResolvePath
	}
	real, err := resolve(filepath.FromSlash(path))
	if err != nil || !filepath.IsAbs(real) {
		real = ""
	} else {
		real = filepath.ToSlash(filepath.Clean(real))
	}
	at.real[path] = real
	return real
}

// place returns a path of a request, in the request's directory if it is relative.
func (at *places) place(path, cwd string) followed {
	p := followed{}
	if filepath.IsAbs(cwd) {
		p.cwd = cleanPath(cwd, "")
	}
	p.path = cleanPath(path, p.cwd)
	p.real, p.inCwd = at.follow(p.path), at.follow(p.cwd)
	return p
}

// below reports whether a path, relative or not, is in the directory of a request,
// also as links have it.
func (at *places) below(req *Request, path string) bool {
	if !filepath.IsAbs(req.Cwd) || path == "" {
		return false
	}
	p := at.place(path, req.Cwd)
	for _, pair := range [][2]string{{p.cwd, p.path}, {p.inCwd, p.real}} {
		if pair[0] == "" || pair[1] == "" {
			return false
		}
		if _, ok := within(filepath.FromSlash(pair[0]), filepath.FromSlash(pair[1])); !ok {
			return false
		}
	}
	return true
}

// cleanPath returns an absolute path with slashes; one that is relative is in
// cwd.
func cleanPath(path, cwd string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.FromSlash(cwd), string(filepath.Separator), path)
	}
	return filepath.ToSlash(filepath.Clean(path))
}

// homePath puts the home directory in the place of ~.
func homePath(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}

// matchPlace reports whether one of some patterns matches a path, as it is spelled
// and as links have it. To allow, both have to match, and to deny or ask one.
func matchPlace(globs []pathGlob, p followed, wide bool) match {
	any := func(path, cwd string) bool {
		return slices.ContainsFunc(globs, func(g pathGlob) bool { return g.matches(path, cwd) })
	}
	spelled := any(p.path, p.cwd)
	switch {
	case wide && spelled:
		return matchYes
	case !wide && !spelled:
		return matchNo
	case p.real == "" && wide:
		return matchMaybe
	case p.real == "":
		return matchNo
	}
	return matchIf(any(p.real, p.inCwd))
}

func (r *rule) matchCwd(d *deed, req *Request) match {
	wide := r.Effect != EffectAllow
	if req.Cwd == "" || !wide && !filepath.IsAbs(req.Cwd) {
		return matchNo
	}
	m := matchPlace(r.cwd, d.places.place(req.Cwd, ""), wide)
	if part := d.partOf(); part != nil && (part.Dir.Open || part.Dir.Text != "") {
		// The line has changed to another directory, or tried to.
		to := matchMaybe
		if !part.Dir.Open {
			to = matchPlace(r.cwd, d.places.place(homePath(part.Dir.Text), req.Cwd), wide)
		}
		if wide {
			return max(m, to)
		}
		return min(m, matchIf(to == matchYes))
	}
	return m
}

// partOf returns the simple command that a deed is about, or nil.
func (d *deed) partOf() *CommandPart {
	if d.line == nil || d.line.parsed == nil || d.part < 0 {
		return nil
	}
	return &d.line.parsed.Parts[d.part]
}

func (r *rule) matchPaths(d *deed, req *Request) match {
	wide := r.Effect != EffectAllow
	if !wide && !req.pathsKnown() {
		return matchNo
	}
	best, worst := matchNo, matchYes
	for _, path := range req.Paths {
		if path == "" {
			continue
		}
		m := matchPlace(r.paths, d.places.place(path, req.Cwd), wide)
		best, worst = max(best, m), min(worst, m)
	}
	if !wide {
		return worst
	}
	switch acpv2.ToolKind(req.Kind) {
	case acpv2.ToolKindRead, acpv2.ToolKindEdit, acpv2.ToolKindDelete, acpv2.ToolKindMove:
		if !req.pathsKnown() && d.file == nil {
			best = max(best, matchMaybe)
		}
	}
	if best == matchNo && d.mayOpen(r, req) {
		return matchMaybe
	}
	return best
}

package seek

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Bounds of a walk.
const (
	MaxFiles   = 1_000_000 // that are visited
	MaxDepth   = 100       // directories below each other
	maxWorkers = 8
	maxNames   = 3   // of what is ignored
	pieceFiles = 128 // of a directory that one worker visits at once
)

// A Walk goes through the files of a directory. Links are not followed, .git is left out.
type Walk struct {
	Dir string // absolute
	// Base is a directory above, or Dir itself, from which on paths fit Glob, too.
	Base string
	Glob *Glob // nil is for all files
	// Ignored are the files, too, that .gitignore files name.
	Ignored bool
	// Visit is called for each file, by several goroutines at once, each with a number below
	// Workers.
	Visit func(worker int, path string)
}

// A Seen is what a walk has come across.
type Seen struct {
	Files   int  // regular files, whatever their names are
	Fitting int  // those of them that fit the pattern: they were visited
	Full    bool // there are more than MaxFiles of these
	Deep    bool // there are directories more than MaxDepth below
	Closed  int  // directories that could not be read
	Ignored Ignored
}

// An Ignored is what was left out since .gitignore files name it.
type Ignored struct {
	Files, Dirs int
	Names       []string // the first of the directories' names
}

// Workers is how many goroutines a walk has at most.
func Workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// Run walks until there are no more files, or ctx is done.
func (w *Walk) Run(ctx context.Context) Seen {
	r := &walking{Walk: w, ctx: ctx, top: w.Dir}
	r.wake.L = &r.mu
	if _, ok := below(w.Base, w.Dir); ok {
		r.top = w.Base
	}
	var above []ignoreDir
	if !w.Ignored {
		above = r.above()
	}
	first := piece{above: above}
	first.rel, _ = below(r.top, w.Dir)
	base, _ := below(r.top, w.Base)
	r.globFrom = [2]int{len(first.rel), min(len(base), len(first.rel))}
	r.pieces, r.open, r.room = []piece{first}, 1, MaxFiles
	var wg sync.WaitGroup
	for i := range Workers() {
		wg.Go(func() { r.work(i) })
	}
	wg.Wait()
	return r.seen
}

// A walking is a walk that runs.
type walking struct {
	*Walk
	ctx      context.Context
	top      string // a directory above, or Dir: what paths are from on
	globFrom [2]int // where in a path that begins which a glob is about

	mu     sync.Mutex
	wake   sync.Cond
	pieces []piece // that nobody has begun, the last first
	open   int     // pieces that are not done
	room   int     // files that can still be visited
	seen   Seen
}

// A piece is a directory, or some of its files.
type piece struct {
	rel   string // from the top on, "" or with a slash at the end
	above []ignoreDir
	depth int
	files []string // or nil for the directory
}

// below returns the path of a directory from one above on: "", or with a slash at the end.
func below(above, dir string) (rel string, ok bool) {
	rel, err := filepath.Rel(above, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if rel == "." {
		return "", true
	}
	return filepath.ToSlash(rel) + "/", true
}

// above returns the rules of the directories above Dir, from the root of its repository on,
// or from the top, which is that root if it is above. Where they name Dir itself they do not
// count: it was asked for.
func (r *walking) above() (all []ignoreDir) {
	first := r.top
	for dir := r.Dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			first = dir
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if _, ok := below(first, r.top); ok {
		r.top = first
	}
	at, _ := below(r.top, first)
	if rules := readRules(filepath.Join(first, ".git", "info", "exclude")); len(rules) > 0 {
		all = append(all, ignoreDir{at, rules})
	}
	rel, _ := below(first, r.Dir)
	for name := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		if name == "" {
			break
		}
		if rules := readIgnore(filepath.Join(r.top, filepath.FromSlash(at))); len(rules) > 0 {
			all = append(all, ignoreDir{at, rules})
		}
		if ignored(all, at+name, true) {
			return nil
		}
		at += name + "/"
	}
	return all
}

// work visits pieces until there are none, and none can come.
func (r *walking) work(worker int) {
	for {
		r.mu.Lock()
		for len(r.pieces) == 0 && r.open > 0 {
			r.wake.Wait()
		}
		if r.open == 0 {
			r.mu.Unlock()
			return
		}
		p := r.pieces[len(r.pieces)-1]
		r.pieces = r.pieces[:len(r.pieces)-1]
		r.mu.Unlock()
		more, seen := r.visit(worker, p)
		r.mu.Lock()
		r.pieces = append(r.pieces, more...)
		r.open += len(more) - 1
		r.seen.Add(seen)
		if r.open == 0 || len(more) > 0 {
			r.wake.Broadcast()
		}
		r.mu.Unlock()
	}
}

// Add adds what was seen elsewhere.
func (s *Seen) Add(more Seen) {
	s.Files += more.Files
	s.Fitting += more.Fitting
	s.Full = s.Full || more.Full
	s.Deep = s.Deep || more.Deep
	s.Closed += more.Closed
	s.Ignored.Files += more.Ignored.Files
	s.Ignored.Dirs += more.Ignored.Dirs
	for _, name := range more.Ignored.Names {
		s.Ignored.name(name)
	}
}

// name keeps a name, if it is among the first in order: so they are the same each time.
func (i *Ignored) name(name string) {
	if at, there := slices.BinarySearch(i.Names, name); !there && at < maxNames {
		i.Names = slices.Insert(i.Names, at, name)
		i.Names = i.Names[:min(len(i.Names), maxNames)]
	}
}

// visit visits a piece, and returns those that it has come across.
func (r *walking) visit(worker int, p piece) (more []piece, seen Seen) {
	if r.ctx.Err() != nil {
		return nil, seen
	}
	if p.files != nil {
		r.visitFiles(worker, p.rel, p.files)
		return nil, seen
	}
	dir := filepath.Join(r.top, filepath.FromSlash(p.rel))
	entries, err := readDir(dir)
	if err != nil {
		seen.Closed++
	}
	above := p.above
	if !r.Ignored && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		if rules := readIgnore(dir); len(rules) > 0 {
			above = append(above[:len(above):len(above)], ignoreDir{p.rel, rules})
		}
	}
	var files []string
	for _, e := range entries {
		name, isDir := e.Name(), e.IsDir()
		if name == ".git" {
			continue
		}
		if len(above) > 0 && ignored(above, p.rel+name, isDir) {
			if isDir {
				seen.Ignored.Dirs++
				seen.Ignored.name(name + "/")
			} else {
				seen.Ignored.Files++
			}
			continue
		}
		switch {
		case isDir && p.depth == MaxDepth:
			seen.Deep = true
		case isDir:
			more = append(more, piece{rel: p.rel + name + "/", above: above, depth: p.depth + 1})
		case e.Type().IsRegular():
			seen.Files++
			if r.fits(p.rel + name) {
				files = append(files, name)
			}
		}
	}
	if files, seen.Full = r.take(files); len(files) == 0 {
		return more, seen
	}
	seen.Fitting = len(files)
	for len(files) > pieceFiles {
		more = append(more, piece{rel: p.rel, files: files[:pieceFiles]})
		files = files[pieceFiles:]
	}
	if len(more) > 0 { // others can begin with what is left
		more = append(more, piece{rel: p.rel, files: files})
		return more, seen
	}
	r.visitFiles(worker, p.rel, files)
	return more, seen
}

// take returns the files that can still be visited.
func (r *walking) take(files []string) (fit []string, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(files) > r.room {
		files, full = files[:r.room], true
	}
	r.room -= len(files)
	return files, full
}

// fits reports whether a path from the top on fits the pattern.
func (r *walking) fits(rel string) bool {
	g := r.Glob
	if g == nil {
		return true
	}
	if !g.path {
		return g.match(rel[r.globFrom[1]:])
	}
	return g.match(rel[r.globFrom[1]:], rel[r.globFrom[0]:])
}

func (r *walking) visitFiles(worker int, rel string, names []string) {
	dir := filepath.Join(r.top, filepath.FromSlash(rel))
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	for _, name := range names {
		if r.ctx.Err() != nil {
			return
		}
		r.Visit(worker, dir+name)
	}
}

// readDir returns the entries of a directory, in any order, as far as they can be read.
func readDir(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return f.ReadDir(-1)
}

package changes

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/gitread"
)

// The bounds of what Git is asked for.
const (
	gitTime = 10 * time.Second
	// Filters are asked for of so many files.
	maxFilters = 2 * maxFiles
	// A Base keeps the content of files that had changes already.
	maxKept     = 200
	maxKeptText = 4 << 20
)

// A Base is what Git knew of a work tree at one time. It never changes, and any goroutine may use
// it.
type Base struct {
	top    string           // the root of the work tree
	commit string           // "" before the first
	kept   map[string]state // files that were not as in the commit, by absolute path
}

// TakeBase returns the present state of the Git work tree that contains dir. It is nil without an
// error if there is none, or if there is no Git.
func TakeBase(ctx context.Context, dir string) (*Base, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	t, err := gitread.Open(ctx, dir)
	if errors.Is(err, gitread.ErrNone) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	b := &Base{top: t.Top, commit: t.Commit, kept: map[string]state{}}
	dirty, err := differs(ctx, t, b.commit)
	if err != nil {
		return nil, err
	}
	room := maxKeptText
	for i, d := range dirty {
		s := read(d.path)
		if room -= len(s.text); i >= maxKept || room < 0 {
			s = state{exists: s.exists, opaque: "had too many changes before the session"}
		}
		b.kept[d.path] = s
	}
	return b, nil
}

// A different file is not as in the commit.
type different struct {
	path   string // absolute
	object string // what it is in the commit; "" if it is not there
	filter string // the filter that the attributes of the project name for it
}

// differs returns the files that may not be as in a commit, and those that Git does not know and
// does not ignore. Git compares the files with its index, not their content.
func differs(ctx context.Context, t *gitread.Tree, commit string) ([]different, error) {
	objects := map[string]string{}
	if commit != "" {
		out, err := t.Output(ctx, nil, "-C", t.Top, "diff-index", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules", "-z", commit, "--")
		if err != nil {
			return nil, err
		}
		fields := strings.Split(string(out), "\x00")
		for i := 0; i+1 < len(fields); i += 2 { // ":MODE MODE OBJECT OBJECT STATUS", and the path
			if words := strings.Fields(fields[i]); len(words) == 5 {
				object := words[2]
				if strings.Trim(object, "0") == "" {
					object = ""
				}
				objects[fields[i+1]] = cmp.Or(objects[fields[i+1]], object)
			}
		}
	}
	others := []string{"-C", t.Top, "ls-files", "--others", "--exclude-standard", "-z"}
	if commit == "" {
		others = append(others, "--cached")
	}
	unknown, err := t.Output(ctx, nil, others...)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(string(unknown), "\x00") {
		if _, ok := objects[name]; !ok && name != "" && !strings.HasSuffix(name, "/") { // a directory is a repository of its own
			objects[name] = ""
		}
	}
	names := slices.Sorted(maps.Keys(objects))
	filters, err := filters(ctx, t, names)
	if err != nil {
		return nil, err
	}
	out := make([]different, 0, len(names))
	for _, name := range names {
		out = append(out, different{filepath.Join(t.Top, filepath.FromSlash(name)), objects[name], filters[name]})
	}
	return out, nil
}

// filters returns the filters that the attributes of the project name for files.
func filters(ctx context.Context, t *gitread.Tree, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	names = names[:min(len(names), maxFilters)]
	out, err := t.Output(ctx, strings.NewReader(strings.Join(names, "\x00")+"\x00"), "-C", t.Top, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(fields); i += 3 { // path, attribute, value
		if v := fields[i+2]; v != "unspecified" && v != "unset" && v != "set" {
			found[fields[i]] = v
		}
	}
	return found, nil
}

// changed returns the files that are no longer as they were, as they were.
func (b *Base) changed(ctx context.Context) (map[string]state, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	t, err := gitread.Open(ctx, b.top)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	now, err := differs(ctx, t, b.commit)
	if err != nil {
		return nil, err
	}
	was := map[string]state{}
	var ask []different
	seen := map[string]bool{}
	for _, d := range now {
		seen[d.path] = true
		if s, ok := b.kept[d.path]; ok {
			if s.filter = d.filter; s.opaque != "" || !s.same(read(d.path)) {
				was[d.path] = s
			}
			continue
		}
		ask = append(ask, d)
	}
	for path, s := range b.kept { // it is as in the commit now
		if !seen[path] {
			was[path] = s
		}
	}
	if len(ask) > maxFiles {
		ask, err = ask[:maxFiles], fmt.Errorf("%d files have changed; only the first %d are compared", len(ask), maxFiles)
	}
	return was, errors.Join(err, committed(ctx, t, ask, was))
}

// committed adds files to was as they are in the commit.
func committed(ctx context.Context, t *gitread.Tree, files []different, was map[string]state) error {
	var names strings.Builder
	var asked []different
	for _, d := range files {
		if d.object == "" {
			was[d.path] = state{filter: d.filter}
			continue
		}
		asked = append(asked, d)
		names.WriteString(d.object + "\n")
	}
	if len(asked) == 0 {
		return nil
	}
	cmd := t.Command(ctx, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(names.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	for _, d := range asked {
		s, err := batched(r)
		if err != nil {
			break
		}
		s.filter = d.filter
		was[d.path] = s
	}
	_, _ = io.Copy(io.Discard, r)
	return cmd.Wait()
}

// batched reads one answer of git cat-file --batch.
func batched(r *bufio.Reader) (state, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return state{}, err
	}
	if strings.HasSuffix(head, " missing\n") {
		return state{exists: true, opaque: "its content before is not in this clone"}, nil
	}
	words := strings.Fields(head)
	if len(words) != 3 {
		return state{}, fmt.Errorf("git cat-file answered %q", head)
	}
	n, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return state{}, err
	}
	data, err := io.ReadAll(io.LimitReader(r, min(n, maxText+1)))
	if err != nil {
		return state{}, err
	}
	if _, err := io.CopyN(io.Discard, r, n-int64(len(data))+1); err != nil {
		return state{}, err
	}
	if words[1] != "blob" {
		return state{exists: true, opaque: "not a regular file"}, nil
	}
	return content(data), nil
}

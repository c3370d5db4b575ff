package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/mention"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// FilesMethod returns files of a session's directory that a prompt can mention. Those may call it who may send prompts.
var FilesMethod = jsonrpc.Method[FilesRequest, FilesAnswer]{Name: ownmeta.Method + "files"}

// A FilesRequest asks for the files that match a query fuzzily.
type FilesRequest struct {
	SessionID acp.SessionID `json:"sessionId"`
	Query     string        `json:"query"`
	Limit     int           `json:"limit,omitempty"` // 0 means 50, which is the most
}

// A FilesAnswer has files, best first, as paths relative to the session's directory, with slashes. Directories end in
// one.
type FilesAnswer struct {
	Files []string `json:"files"`
}

const (
	// maxFound bounds the files of an answer, and maxFileQuery the bytes of a query.
	maxFound     = 50
	maxFileQuery = 1 << 10
	// maxFileLists bounds the directories whose files are remembered, each for filesFor.
	maxFileLists = 8
	filesFor     = 10 * time.Second
	// maxListing bounds how many directories are listed at a time, and maxFinding in how many files are looked for.
	maxListing = 2
	maxFinding = 2
)

// fileLists remembers the files of directories for a while, since a client asks with each key that is pressed. Its zero value
// is ready for use.
type fileLists struct {
	once    sync.Once
	busy    chan struct{} // holds one for each directory that is being listed
	finding chan struct{} // and for each in which files are looked for
	mu      sync.Mutex
	all     []fileList // the one that was listed last at the end
}

// A fileList has the files of a directory, as a user may see them.
type fileList struct {
	user, dir string
	at        time.Time
	files     []string
}

// get returns what is remembered.
func (l *fileLists) get(user, dir string) ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.all {
		if list.user == user && list.dir == dir && time.Since(list.at) < filesFor {
			return list.files, true
		}
	}
	return nil, false
}

// of returns the files of a directory, which list lists.
func (l *fileLists) of(ctx context.Context, user, dir string, list func() ([]string, error)) ([]string, error) {
	if files, ok := l.get(user, dir); ok {
		return files, nil
	}
	l.init()
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if files, ok := l.get(user, dir); ok { // meanwhile
		return files, nil
	}
	files, err := list()
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return !mentionable(file) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(f fileList) bool { return f.user == user && f.dir == dir })
	l.all = append(l.all, fileList{user, dir, time.Now(), files})
	if n := len(l.all) - maxFileLists; n > 0 {
		l.all = slices.Delete(l.all, 0, n)
	}
	return files, nil
}

// find returns what look finds. Only so many look at a time.
func (l *fileLists) find(ctx context.Context, look func() []string) ([]string, error) {
	l.init()
	select {
	case l.finding <- struct{}{}:
		defer func() { <-l.finding }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return look(), nil
}

func (l *fileLists) init() {
	l.once.Do(func() { l.busy, l.finding = make(chan struct{}, maxListing), make(chan struct{}, maxFinding) })
}

// expire drops the lists that nobody gets any more.
func (l *fileLists) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(f fileList) bool { return time.Since(f.at) >= filesFor })
}

// mentionable reports whether the name of a file can be shown, and sent as it is.
func mentionable(file string) bool {
	return utf8.ValidString(file) && !strings.ContainsFunc(file, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) })
}

// files serves [FilesMethod], wherever the session runs: only there its directory is.
func (g *Gateway) files(ctx context.Context, p *FilesRequest) (*FilesAnswer, error) {
	who, _, err := g.lookUp(ctx, p.SessionID)
	switch {
	case err != nil:
		return nil, err
	case !who.may(MayPrompt):
		return nil, who.errRole("list files")
	case p.Limit < 0 || p.Limit > maxFound:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a limit of %d files: 1 to %d can be asked for", p.Limit, maxFound)
	case len(p.Query) > maxFileQuery:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "a query of %d bytes, at most %d", len(p.Query), maxFileQuery)
	}
	limit := p.Limit
	if limit == 0 {
		limit = maxFound
	}
	var found []string
	err = g.anywhere(ctx, string(p.SessionID), func(at place) (err error) {
		found, err = at.files(ctx, p.Query, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &FilesAnswer{Files: append([]string{}, found...)}, nil
}

// files implements place. The directory is one of the session's owner, whose rights count.
func (s *session) files(ctx context.Context, query string, limit int) ([]string, error) {
	s.mu.Lock()
	owner, groups, dir := s.info.Owner, s.known.Groups, s.info.Cwd
	s.mu.Unlock()
	p := s.g.policy(owner, groups)
	if p != nil {
		if err := p.Directory(dir); err != nil {
			return nil, err
		}
	}
	all, err := s.g.fileLists.of(ctx, owner, dir, func() ([]string, error) {
		if !s.g.cfg.Many {
			return mention.List(ctx, dir), context.Cause(ctx)
		}
		return mention.Walk(ctx, dir, func(real string) error {
			if p != nil && !p.MayWorkIn(real) {
				return fmt.Errorf("the directory leads to %s, where %s may not work", real, owner)
			}
			return nil
		})
	})
	if err != nil {
		if ctx.Err() == nil {
			s.logger().Info("gateway: the files of a session cannot be listed", "error", err)
			err = &jsonrpc.Failure{Message: "the files of the session's directory cannot be listed", Reason: "files"}
		}
		return nil, err
	}
	return s.g.fileLists.find(ctx, func() []string { return mention.Find(query, all, limit, func(string) bool { return true }) })
}

type wireFiles struct {
	wireSession
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

type wireFound struct {
	Files   []string     `json:"files,omitempty"`
	Failure *wireFailure `json:"failure,omitempty"`
}

var rpcFiles = jsonrpc.Method[wireFiles, wireFound]{Name: "files"}

// files implements place.
func (v *visit) files(ctx context.Context, query string, limit int) ([]string, error) {
	res, err := rpcFiles.Call(ctx, v.l.conn, &wireFiles{v.wire(), query, limit})
	if err != nil {
		return nil, err
	}
	return res.Files, res.Failure.err()
}

// files is called by another node.
func (h *host) files(ctx context.Context, p *wireFiles) (*wireFound, error) {
	v := h.guest(&p.wireSession)
	if v == nil {
		return &wireFound{Failure: failed(errGone)}, nil
	}
	found, err := v.s.files(ctx, p.Query, p.Limit)
	return &wireFound{Files: found, Failure: failed(err)}, nil
}

package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/gitread"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/picture"
	"github.com/goacp/acp/internal/skills"
)

// guidanceFrom begins guidance in a conversation, before the name of its file.
const guidanceFrom = "Guidance from "

// surroundings says where the session is, for the beginning of the conversation, and which files were left
// out of it.
func (s *session) surroundings(ctx context.Context) (text string, left []guide.Left) {
	find := s.finder(s.acp.Cwd())
	var b strings.Builder
	fmt.Fprintf(&b, "Working directory: %s\n", s.acp.Cwd())
	for _, dir := range s.acp.AdditionalDirectories() {
		fmt.Fprintf(&b, "Another directory: %s\n", dir)
	}
	fmt.Fprintf(&b, "Date: %s\nSystem: %s\nShell: %s\n", time.Now().Format(time.DateOnly), runtime.GOOS, tool.Shell())
	b.WriteString(inDirectory(s.acp.Cwd()))
	b.WriteString(inGit(ctx, s.acp.Cwd()))
	if skills := find.Skills(); len(skills) > 0 {
		b.WriteString("\nSkills, which say how something is done here. Read skill:NAME before you do it:\n")
		for _, k := range skills {
			fmt.Fprintf(&b, "- %s: %s\n", k.Name, k.About)
		}
	}
	for _, f := range find.Files() {
		fmt.Fprintf(&b, "\n%s%s:\n\n%s\n", guidanceFrom, f.Path, f.Text)
	}
	if s.agent.models != nil {
		find.Prompts() // those that are left out
	}
	return b.String(), find.Left
}

// Bounds of what is said of a directory.
const (
	maxNames   = 40
	maxSpelled = 800 // characters
	gitTime    = time.Second
)

// inDirectory names what is in a directory, as a line.
func inDirectory(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return ""
	}
	var names []string
	for _, e := range entries {
		name := prose.OneLine(e.Name(), 60)
		if e.IsDir() {
			name += "/"
		}
		if name != ".git/" {
			names = append(names, name)
		}
	}
	more := ""
	if n := len(names) - maxNames; n > 0 {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return "In it: " + prose.OneLine(strings.Join(names, " "), maxSpelled) + more + "\n"
}

// inGit says what git knows of a directory, as lines; "" if that is nothing, or takes too long.
func inGit(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	tree, err := gitread.Open(ctx, dir)
	if err != nil {
		return ""
	}
	defer func() { _ = tree.Close() }()
	said := "Git: the repository is " + prose.OneLine(tree.Top, maxSpelled)
	if tree.Branch != "" {
		said += ", on the branch " + prose.OneLine(tree.Branch, 200)
	}
	if out, err := tree.Output(ctx, nil, "status", "--porcelain", "-z", "--no-renames"); err == nil {
		switch n := bytes.Count(out, []byte{0}); n {
		case 0:
			said += ", without uncommitted changes"
		case 1:
			said += ", with uncommitted changes in 1 file"
		default:
			said += fmt.Sprintf(", with uncommitted changes in %d files", n)
		}
	}
	return said + "\n"
}

// guidance returns what people have written for the directories of files that a tool has read or changed,
// unless the conversation has it.
func (m *modelTurn) guidance(files []string) string {
	var found []guide.File
	for _, root := range m.s.roots() {
		find := m.s.finder(root)
		for _, file := range files {
			for _, f := range find.Below(file) {
				if !slices.Contains(found, f) {
					found = append(found, f)
				}
			}
		}
		for _, l := range find.Left {
			if m.first("left out: " + l.Path) {
				m.heldBack(l)
			}
		}
	}
	var b strings.Builder
	for _, f := range found {
		if head := guidanceFrom + f.Path + ":\n"; m.first(head) {
			fmt.Fprintf(&b, "\n%s\n%s\n", head, f.Text)
		}
	}
	return b.String()
}

// first reports whether no message of the conversation, and no result of this turn, has a line of guidance yet.
func (m *modelTurn) first(head string) bool {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	if m.guided[head] {
		return false
	}
	if m.guided == nil {
		m.guided = map[string]bool{}
	}
	m.guided[head] = true
	for _, msg := range m.s.talk.messages {
		for _, p := range msg.Parts {
			texts := []model.Part{p}
			if res, ok := p.(*model.ToolResult); ok {
				texts = res.Parts
			}
			for _, p := range texts {
				if text, ok := p.(*model.Text); ok && strings.Contains(text.Text, head) {
					return false
				}
			}
		}
	}
	return true
}

// heldBack tells the user what the model does not get.
func (m *modelTurn) heldBack(l guide.Left) {
	m.warn("The model does not get "+prose.OneLine(l.Path, 300)+": "+l.Why+".", "")
}

// expand puts the text of a prompt from a file in the place of its name.
func (s *session) expand(blocks []acp.ContentBlock, said wish) []acp.ContentBlock {
	if !said.ok {
		return blocks
	}
	all := s.prompts()
	text := ""
	if i := slices.IndexFunc(all, func(p guide.Prompt) bool { return p.Name == said.name }); i >= 0 {
		text = all[i].Text(said.rest)
	} else if slices.ContainsFunc(s.invoked(), func(k acpv2.Skill) bool { return k.Name == said.name }) {
		text = "Use the skill " + said.name + ": read skill:" + said.name + " first, and do as it says.\n\n" + strings.TrimSpace(said.rest)
	} else {
		return blocks
	}
	blocks = slices.Clone(blocks)
	for j, b := range blocks {
		if t, ok := b.(*acp.TextContent); ok && t.Text == said.text {
			blocks[j] = acp.Text(strings.TrimSpace(text))
		}
	}
	return blocks
}

// typed returns a prompt as the user would type it: a skill is its name, as a command is.
func typed(t *acp.Turn) []acp.ContentBlock { return skills.Plain(t.Blocks()) }

// invoked returns the skills that the user can invoke by their names. Names of commands, and of prompts, are theirs.
func (s *session) invoked() (all []acpv2.Skill) {
	if s.agent.models == nil {
		return nil // nobody would follow them
	}
	taken := s.prompts()
	for _, k := range s.skills() {
		if !isCommand(k.Name) && !slices.ContainsFunc(taken, func(p guide.Prompt) bool { return p.Name == k.Name }) {
			all = append(all, acpv2.Skill{Name: k.Name, Description: k.About, Path: filepath.Join(k.Dir, "SKILL.md")})
		}
	}
	return all
}

// parts returns a prompt as a model takes it. Editors put context into blocks of their own,
// in any order; all of them count.
func (m *modelTurn) parts(blocks []acp.ContentBlock) []model.Part {
	var parts []model.Part
	text := func(format string, args ...any) {
		parts = append(parts, &model.Text{Text: fmt.Sprintf(format, args...)})
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case *acp.TextContent:
			if strings.TrimSpace(b.Text) != "" {
				text("%s", b.Text)
			}
		case *acp.ImageContent:
			parts = append(parts, m.picture(b, b.Data))
		case *acp.ResourceLink:
			if path, ok := tool.FilePath(b.URI); ok {
				text("(The user refers to the file %s.)", path)
				continue
			}
			text("(The user refers to %s.)", b.URI)
		case *acp.EmbeddedResource:
			if r, ok := b.Resource.(*acp.BlobResourceContents); ok && strings.HasPrefix(r.MIMEType, "image/") {
				parts = append(parts, m.picture(b, r.Blob))
				continue
			}
			if r, ok := b.Resource.(*acp.TextResourceContents); ok {
				name := r.URI
				if path, ok := tool.FilePath(r.URI); ok {
					name = path
				}
				text("(The user has attached %s:)\n%s", name, r.Text)
				continue
			}
			text("(The user has attached %s, which you cannot see.)", given1(b))
		default:
			text("(The user has attached %s, which you cannot see.)", given1(b))
		}
	}
	return parts
}

// picture returns an image of a prompt as models take it, or a text that says why it is not there. The user learns
// of that, too.
func (m *modelTurn) picture(b acp.ContentBlock, encoded string) model.Part {
	if !m.model.Info().Images {
		return &model.Text{Text: fmt.Sprintf("(The user has attached %s, which you cannot see.)", given1(b))}
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		err = errors.New("it is not base64")
	}
	p := picture.Picture{}
	if err == nil {
		p, err = picture.Fit(data, picture.Common)
	}
	if err != nil {
		why := prose.OneLine(err.Error(), 200)
		m.warn("The model does not get "+given1(b)+": "+why+".", "")
		return &model.Text{Text: fmt.Sprintf("(The user has attached %s, which you do not get: %s.)", given1(b), why)}
	}
	return &model.Image{MIMEType: p.MIMEType, Data: p.Data}
}

// warn tells the user of something that is not as it should be: by a notice, or, where the protocol has none, in
// the answer.
func (m *modelTurn) warn(title, detail string) {
	m.out.EndMessage()
	if m.s.acp.Conn().Version() == 1 {
		m.say(strings.TrimSpace(title+" "+detail) + "\n\n")
		m.out.EndMessage()
		return
	}
	_ = m.out.Notice(acp.NoticeSeverityWarning, title, detail)
}

package agent

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// surroundings says where the session is, for the beginning of the conversation, and which files were left
// out of it.
func (s *session) surroundings() (text string, left []guide.Left) {
	find := s.finder()
	var b strings.Builder
	fmt.Fprintf(&b, "Working directory: %s\n", s.acp.Cwd())
	for _, dir := range s.acp.AdditionalDirectories() {
		fmt.Fprintf(&b, "Another directory: %s\n", dir)
	}
	fmt.Fprintf(&b, "Date: %s\nSystem: %s\n", time.Now().Format(time.DateOnly), runtime.GOOS)
	if skills := find.Skills(); len(skills) > 0 {
		b.WriteString("\nSkills, which say how something is done here. Read skill:NAME before you do it:\n")
		for _, k := range skills {
			fmt.Fprintf(&b, "- %s: %s\n", k.Name, k.About)
		}
	}
	for _, f := range find.Files() {
		fmt.Fprintf(&b, "\nGuidance for this project, from %s:\n\n%s\n", f.Path, f.Text)
	}
	if s.agent.models != nil {
		find.Prompts() // those that are left out
	}
	return b.String(), find.Left
}

// expand puts the text of a prompt from a file in the place of its name.
func (s *session) expand(blocks []acp.ContentBlock, said wish) []acp.ContentBlock {
	if !said.ok {
		return blocks
	}
	all := s.prompts()
	i := slices.IndexFunc(all, func(p guide.Prompt) bool { return p.Name == said.name })
	if i < 0 {
		return blocks
	}
	blocks = slices.Clone(blocks)
	for j, b := range blocks {
		if t, ok := b.(*acp.TextContent); ok && t.Text == said.text {
			blocks[j] = acp.Text(all[i].Text(said.rest))
		}
	}
	return blocks
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
			data, err := base64.StdEncoding.DecodeString(b.Data)
			if err != nil || !m.model.Info().Images {
				text("(The user has attached %s, which you cannot see.)", given1(b))
				continue
			}
			parts = append(parts, &model.Image{MIMEType: b.MIMEType, Data: data})
		case *acp.ResourceLink:
			if path, ok := tool.FilePath(b.URI); ok {
				text("(The user refers to the file %s.)", path)
				continue
			}
			text("(The user refers to %s.)", b.URI)
		case *acp.EmbeddedResource:
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

package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/model"
)

// The shares of the window that count.
const (
	// Full is the share from which a conversation is made short.
	Full = 0.85
	// Won is the share that it may have afterwards: if it has more nothing was won.
	Won = 0.60
	// tail is the share of the last steps that are kept as they are. They are a quarter of
	// the conversation at most.
	tail = 0.10
	// words is how many tokens of what the user has said are kept as they are.
	words = 20_000
	// unknown is what a window of unknown size counts as.
	unknown = 128_000
)

// Ask is what the model is asked when its conversation is made short.
const Ask = `The conversation is about to be replaced by a summary, since it has become too long. Write that summary now, for yourself: you will see nothing else of the conversation but the user's own messages and the last steps. Do not use a tool. Write these sections, briefly and with exact names, paths and values:

## Goal
What the user wants, and what they have said about how.
## Done
What was done and decided, and why.
## Known
What was found out that is still of use: places, causes, results, what was tried and failed.
## Next action
The very next thing to do, so that the work continues without a repetition.`

// begun is how the part begins that stands for what was left out. It is never the user's.
const begun = "(The conversation before this was replaced by a summary, since it had become too long.)"

// Notes are what is known of a conversation in addition to its messages.
type Notes struct {
	Summary string   // what the model has written; "" if it has not
	Plan    string   // a line for each step
	Changed []string // paths of files
}

// Compact returns a conversation that continues another one in as few tokens as possible.
// The first part of its first message, which describes the surroundings, stays; size is
// that of the window in tokens, 0 if it is not known.
func Compact(messages []*model.Message, n Notes, m *Meter, size int) []*model.Message {
	if len(messages) == 0 {
		return nil
	}
	if size == 0 {
		size = unknown
	}
	kept := last(messages, m, min(int(float64(size)*tail), m.Of(messages...)/4))
	left := messages[:len(messages)-len(kept)]
	if len(left) == 0 {
		return messages
	}
	first := &model.Message{Role: model.User}
	all := said(left)
	if len(left[0].Parts) > 0 && len(all) > 0 && all[0] == left[0].Parts[0] && len(left[0].Parts) > 1 {
		first.Parts, all = append(first.Parts, all[0]), all[1:]
	}
	first.Parts = append(first.Parts, &model.Text{Text: n.text(left)})
	first.Parts = append(first.Parts, newest(all, m, min(words, size/5))...)
	first.Parts = append(first.Parts, &model.Text{Text: "(" + continued + ")"})
	return append([]*model.Message{first}, kept...)
}

// continued ends what a conversation begins with that was made short.
const continued = "These were the user's messages. Continue with the next action of the summary."

// text is what stands for the messages that are left out.
func (n *Notes) text(left []*model.Message) string {
	var b strings.Builder
	b.WriteString(begun + "\n")
	section := func(title, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", title, text)
		}
	}
	section("Summary:", n.Summary)
	if n.Summary == "" {
		b.WriteString("\nThere is no summary. Look at the files to see how far the work is.\n")
		section("The last that the assistant has said:", head(lastText(left), 4000))
	}
	section("The plan:", n.Plan)
	section("Files changed so far:", strings.Join(n.Changed, "\n"))
	section("The last command that failed:", failedCommand(left))
	return b.String()
}

// last returns the last steps, each the answer of the model and what came of it, that fit
// into a number of tokens.
func last(messages []*model.Message, m *Meter, most int) []*model.Message {
	from, total := len(messages), 0
	for i := len(messages) - 1; i > 0; i-- {
		total += m.Of(messages[i])
		if total > most {
			break
		}
		if messages[i].Role == model.Assistant {
			from = i
		}
	}
	return slices.Clone(messages[from:])
}

// said returns what the user has said and shown. What stands for messages that were left
// out earlier is not the user's.
func said(messages []*model.Message) []model.Part {
	var all []model.Part
	for _, msg := range messages {
		if msg.Role != model.User {
			continue
		}
		for _, p := range msg.Parts {
			switch p := p.(type) {
			case *model.Text:
				if !strings.HasPrefix(p.Text, begun) && p.Text != "("+continued+")" {
					all = append(all, p)
				}
			case *model.Image:
				all = append(all, p)
			}
		}
	}
	return all
}

// newest returns the last parts that fit into a number of tokens. One that is too long by
// itself is cut.
func newest(parts []model.Part, m *Meter, most int) []model.Part {
	var kept []model.Part
	for _, p := range slices.Backward(parts) {
		n := m.Of(&model.Message{Parts: []model.Part{p}})
		if n > most {
			if t, ok := p.(*model.Text); ok && most > 100 {
				cut := head(t.Text, len(t.Text)*most/n)
				kept = append(kept, &model.Text{Text: cut + "\n(The rest of this message is left out.)"})
			}
			break
		}
		most -= n
		kept = append(kept, p)
	}
	slices.Reverse(kept)
	return kept
}

// head returns the beginning of a text, in whole characters.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}

func lastText(messages []*model.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role != model.Assistant {
			continue
		}
		for _, p := range slices.Backward(m.Parts) {
			if t, ok := p.(*model.Text); ok && strings.TrimSpace(t.Text) != "" {
				return t.Text
			}
		}
	}
	return ""
}

// failedCommand returns the last command that failed and has not succeeded since, with
// the end of what it printed.
func failedCommand(messages []*model.Message) string {
	commands := map[string]string{} // by id of the wish
	line, output := "", ""
	for _, msg := range messages {
		for _, p := range msg.Parts {
			switch p := p.(type) {
			case *model.ToolUse:
				if c, ok := object(p.Input)["command"].(string); ok {
					commands[p.ID] = c
				}
			case *model.ToolResult:
				c, ok := commands[p.ID]
				switch {
				case !ok:
				case p.Failed:
					line, output = c, resultText(p)
				case c == line:
					line, output = "", ""
				}
			}
		}
	}
	if line == "" {
		return ""
	}
	if len(output) > 1500 {
		output = strings.ToValidUTF8("…"+output[len(output)-1500:], "")
	}
	return head(line, 1000) + "\n" + output
}

func resultText(r *model.ToolResult) string {
	var texts []string
	for _, p := range r.Parts {
		if t, ok := p.(*model.Text); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Trim returns a conversation with results of tools left out, the oldest first, until it
// has at most so many tokens. It is for a conversation that is too long even to be
// summarized; it still has all of its steps.
func Trim(p *model.Prefix, messages []*model.Message, m *Meter, most int) []*model.Message {
	all := slices.Clone(messages)
	rough := Meter{ratio: m.ratio}
	total := rough.Estimate(p, all)
	for i, msg := range all {
		if total <= most {
			break
		}
		was := rough.Of(msg)
		short := &model.Message{Role: msg.Role}
		for _, part := range msg.Parts {
			if r, ok := part.(*model.ToolResult); ok && len(resultText(r)) > 200 {
				part = &model.ToolResult{ID: r.ID, Failed: r.Failed, Parts: []model.Part{&model.Text{Text: head(resultText(r), 100) + "\n(The rest is left out.)"}}}
			}
			short.Parts = append(short.Parts, part)
		}
		all[i] = short
		total += rough.Of(short) - was
	}
	return all
}

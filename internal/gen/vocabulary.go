package main

import (
	"fmt"
	"go/format"
	"strings"
)

// A topic is a group of types of version 2 that package acp names.
type topic struct {
	file    string // vocabulary_FILE_gen.go
	heading string
	names   []string
}

// vocabulary lists the types of version 2 that package acp gives its own names to, by
// topic. What is rare is not here: it is used as acpv2.Name.
var vocabulary = []topic{
	{"session", "Identifiers are opaque strings. The agent makes them, except for the ids of requests and options.", []string{
		"SessionID", "MessageID", "ToolCallID", "TerminalID", "PlanID", "CompactionID", "ElicitationID",
		"AuthMethodID", "SessionConfigID", "SessionConfigValueID", "PermissionOptionID",
		"ProviderID", "MCPServerACPID",
	}},
	{"update", "Content of messages.", []string{
		"ContentBlock", "TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource",
		"TextResourceContents", "BlobResourceContents", "UnknownContentBlock",
	}},
	{"update", "Updates of a session. A [SessionUpdate] is read with a type switch.", []string{
		"SessionUpdate", "UserMessage", "UserMessageChunk", "AgentMessage", "AgentMessageChunk", "AgentThought",
		"AgentThoughtChunk", "ContentChunk", "ToolCallUpdate", "ToolCallContentChunk", "TerminalUpdate",
		"TerminalOutputChunk", "PlanUpdate", "PlanRemoved", "AvailableCommandsUpdate", "ConfigOptionUpdate",
		"SessionInfoUpdate", "UsageUpdate", "CompactionUpdate", "CompactionSummaryChunk", "SubagentUpdate", "Notice",
		"SessionMessage", "SessionMessageChunk", "UnknownSessionUpdate", "StateUpdate", "IdleStateUpdate",
		"RunningStateUpdate", "RequiresActionStateUpdate",
	}},
	{"update", "Parts of updates.", []string{
		"StopReason", "Usage", "Cost", "BackgroundWork",
		"ToolKind", "ToolCallStatus", "ToolCallContent", "Content", "Terminal", "UnknownToolCallContent",
		"ToolCallLocation", "Diff", "DiffChange", "DiffPatch",
		"TerminalExitStatus", "TerminalOutput",
		"PlanUpdateContent", "PlanItems", "PlanMarkdown", "PlanFile", "PlanEntry", "PlanEntryPriority",
		"PlanEntryStatus", "NoticeSeverity",
	}},
	{"session", "What a session is opened and configured with.", []string{
		"Implementation", "MCPServer", "MCPServerStdio", "MCPServerHTTP", "MCPServerACP", "UnknownMCPServer",
		"EnvVariable", "HTTPHeader", "SystemPrompt", "AvailableCommand", "Command",
		"TextCommandInput", "SessionConfigOption",
		"SessionConfigSelect", "SessionConfigBoolean", "SessionConfigSelectOptions",
		"SessionConfigSelectOptionList", "SessionConfigSelectOption",
		"SessionConfigOptionCategory", "SessionConfigOptionValue",
		"SessionConfigOptionValueID", "SessionConfigOptionValueBoolean", "SessionInfo", "SessionStatus",
		"SessionArchiveFilter", "AgentCapabilities", "ClientCapabilities", "PromptRequest",
	}},
	{"session", "Permissions, elicitation and authentication.", []string{
		"PermissionOption", "PermissionOptionKind", "RequestPermissionSubject", "ToolCallPermissionSubject",
		"CommandPermissionSubject", "ElicitationSchema", "ElicitationProperty", "ElicitationPropertySchema",
		"ElicitationAction", "ElicitationAcceptAction", "ElicitationDeclineAction", "ElicitationCancelAction",
		"AuthMethod", "AuthMethodAgent", "AuthMethodTerminal", "AuthState", "AuthAccount", "ProviderInfo",
		"StringPropertySchema", "NumberPropertySchema",
		"IntegerPropertySchema", "BooleanPropertySchema", "MultiSelectPropertySchema", "EnumOption",
	}},
}

// vocabularyNames are the types that package acp calls something else.
var vocabularyNames = map[string]string{"Command": "SlashCommand", "Terminal": "TerminalContent", "Content": "BlockContent"}

// vocabularyDocs say more of a type than its schema does.
var vocabularyDocs = map[string]string{
	"Command": "[AgentSession.SetCommands] announces commands; in [ClientSession.Commands] they are *SlashCommand.",
}

// A noun is a type to be named, in one of the forms in which the generator has them.
type noun struct {
	name, doc    string
	typ          *goType // nil for what has no definition of its own
	fields       []string
	experimental bool
}

// emitVocabulary writes the names and values that package acp gives the types of
// version 2. A name says what [go doc] would say of its type, since go doc does not
// look behind another name.
func (m *model) emitVocabulary(files map[string][]byte) error {
	nouns := m.nouns()
	names := map[string]string{}
	for _, t := range vocabulary {
		for _, n := range t.names {
			if nouns[n] == nil {
				return fmt.Errorf("vocabulary: acpv2 has no type %s", n)
			}
			if names[n] != "" {
				return fmt.Errorf("vocabulary: %s is listed twice", n)
			}
			names[n] = n
			if other := vocabularyNames[n]; other != "" {
				names[n] = other
			}
		}
	}
	for n := range vocabularyNames {
		if names[n] == "" {
			return fmt.Errorf("vocabulary: %s has another name but is not listed", n)
		}
	}
	values := &writer{}
	out := map[string]*writer{"values": values}
	for _, t := range vocabulary {
		types := out[t.file]
		if types == nil {
			types = &writer{}
			out[t.file] = types
		}
		types.WriteString(comment("", t.heading))
		types.p("type (")
		for i, n := range t.names {
			if i > 0 {
				types.p("")
			}
			m.emitName(types, nouns[n], names)
			if x := nouns[n].typ; x != nil && x.kind == kindEnum {
				emitValues(values, x, names[n])
			}
		}
		types.p(")\n")
	}
	for topic, w := range out {
		file := "vocabulary_" + topic + "_gen.go"
		src, err := source("acp", w.String())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if n := strings.Count(string(src), "\n"); n > maxLines {
			return fmt.Errorf("%s has %d lines: divide it", file, n)
		}
		files[file] = src
	}
	return nil
}

// nouns returns every type of the package by name.
func (m *model) nouns() map[string]*noun {
	out := map[string]*noun{}
	for _, t := range m.types {
		out[t.name] = &noun{name: t.name, doc: t.doc, typ: t, experimental: t.experimental}
		for _, f := range t.fields {
			if f.typ != nil && f.typ.kind == tOrdered {
				out[f.typ.ordered] = &noun{
					name:   f.typ.ordered,
					doc:    fmt.Sprintf("%s is one member of %s.%s, which keeps the order of the wire.", f.typ.ordered, t.name, f.name),
					fields: []string{"Name string", "Schema " + m.goTypeOf(f.typ.elem)},
				}
			}
		}
		if t.union == nil {
			continue
		}
		if c := t.union.catchAll; c != nil {
			out[c.name] = &noun{
				name:   c.name,
				doc:    fmt.Sprintf("%s is %s of a kind that this package does not know.", c.name, anyOf(t.name)),
				fields: []string{"Type string // the discriminator", "Raw json.RawMessage // everything, byte for byte"},
			}
		}
		if t.kind == kindListUnion {
			for _, v := range t.union.variants {
				out[v.typ.name] = &noun{name: v.typ.name, doc: fmt.Sprintf("%s is %s of [%s] items.", v.typ.name, anyOf(t.name), v.typ.payload.name)}
			}
		}
	}
	return out
}

// emitName writes one name with what there is to know of it.
func (m *model) emitName(w *writer, n *noun, names map[string]string) {
	acp := names[n.name]
	doc := acp + strings.TrimPrefix(n.doc, n.name)
	if more := vocabularyDocs[n.name]; more != "" {
		doc += " " + more
	}
	w.doc("\t", doc+" See [acpv2."+n.name+"].", n.experimental)
	fields := n.fields
	switch t := n.typ; {
	case t == nil:
	case t.kind == kindStruct:
		fields = m.fieldLines(t, names)
	case t.kind == kindUnion || t.kind == kindListUnion:
		w.p("\t//")
		w.WriteString(comment("\t", "It is one of "+inVocabulary(variantNames(t.union), names)+"."))
	case t.kind == kindEnum:
		w.p("\t//")
		var values []string
		for _, v := range t.values {
			values = append(values, "["+valueName(t, v, acp)+"]")
		}
		w.WriteString(comment("\t", "Its values are "+list(values)+"; others are kept as they are."))
	}
	if len(fields) > 0 {
		w.p("\t//")
		for line := range strings.Lines(aligned(acp, fields)) {
			w.p("\t//\t%s", strings.TrimRight(line, "\n"))
		}
	}
	w.p("\t%s = acpv2.%s", acp, n.name)
}

// fieldLines returns the fields of a struct, each with the first sentence said of it.
func (m *model) fieldLines(t *goType, names map[string]string) []string {
	if t.payload != nil {
		t = t.payload
	}
	var out []string
	add := func(name, typ, doc string) {
		line := name + " " + inVocabulary(typ, names)
		if first := firstSentence(doc); first != "" {
			line += " // " + first
		}
		out = append(out, line)
	}
	for _, f := range t.fields {
		if f.constant == "" {
			add(f.name, m.fieldType(f), f.doc)
		}
	}
	if t.inline != nil {
		add(t.inline.field, t.inline.union.typ.name, t.inline.doc)
	}
	var raw []string
	if t.meta {
		raw = append(raw, "Meta")
	}
	if t.unknown {
		raw = append(raw, "Unknown")
	}
	if len(raw) > 0 {
		out = append(out, strings.Join(raw, ", ")+" json.RawMessage")
	}
	return out
}

// inVocabulary says the names of types as package acp has to.
func inVocabulary(text string, names map[string]string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && isWord(text[j]) && text[j] != '.' {
			j++
		}
		if j == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		word := text[i:j]
		switch qualified := i > 0 && text[i-1] == '.' || j < len(text) && text[j] == '.'; {
		case qualified || word[0] < 'A' || word[0] > 'Z':
			b.WriteString(word)
		case names[word] != "":
			b.WriteString(names[word])
		case word == "Patch":
			b.WriteString(word)
		default:
			b.WriteString("acpv2." + word)
		}
		i = j
	}
	return b.String()
}

// firstSentence returns the beginning of a text, without a full stop.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}

// aligned formats fields as gofmt would format the type.
func aligned(name string, fields []string) string {
	const clause = "package x\n\n"
	src, err := format.Source([]byte(clause + "type " + name + " struct {\n" + strings.Join(fields, "\n") + "\n}\n"))
	if err != nil {
		return strings.Join(fields, "\n")
	}
	return strings.TrimPrefix(string(src), clause)
}

// list joins names as a sentence does.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// valueName is what package acp calls a value of an enum: StopReasonEndTurn is
// StopEndTurn, since a stop reason is returned from every turn.
func valueName(t *goType, v value, acp string) string {
	name := acp + strings.TrimPrefix(v.name, t.name)
	if rest, ok := strings.CutPrefix(name, "StopReason"); ok {
		return "Stop" + rest
	}
	return name
}

func emitValues(w *writer, t *goType, acp string) {
	w.p("// The values of [%s].", acp)
	w.p("const (")
	for _, v := range t.values {
		w.doc("\t", v.doc, v.experimental)
		w.p("\t%s = acpv2.%s", valueName(t, v, acp), v.name)
	}
	w.p(")\n")
}

package acphost

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
)

// A weighing is what the rules say about a request or, of a command line, about
// one thing it would do.
type weighing struct {
	effect Effect // "" if no rule matches
	rule   *rule  // that decides, nil if none does
	doubt  bool   // it is unknown whether the rule matches
	open   bool   // no rule matches, or not of all the line would do
	always bool   // “allow always” may be chosen
	reason string
	part   string
}

// judge returns what the rules and [Policy.Default] say about a request.
func (p *Policy) judge(req *Request) (w weighing, by Source) {
	w = p.weigh(req)
	if w.effect != "" && w.effect != EffectDeny && w.open && p.Default == EffectDeny {
		return weighing{effect: EffectDeny, reason: "no rule allows it", part: w.part}, ByDefault
	}
	if w.effect != "" {
		return w, ByRule
	}
	if w.effect = p.Default; w.effect == EffectAllow && !knownKind(req.Kind) {
		w.effect = EffectAsk
	}
	return w, ByDefault
}

// weigh returns what the rules say about a request. All that a command line would
// do has to be allowed; what denies one thing denies the line.
func (p *Policy) weigh(req *Request) weighing {
	list := p.deeds(req)
	if len(list) == 1 && !list[0].free {
		return p.first(&list[0])
	}
	var out weighing
	var free []*deed
	decided, allowed, alone := false, false, true
	take := func(d *deed, w weighing) {
		always, open := w.always && (!decided || out.always), w.open || out.open
		if !decided || rank(w.effect) > rank(out.effect) {
			decided, out = true, w
			out.part = d.source
		}
		out.always, out.open = always, open
	}
	for i := range list {
		d := &list[i]
		w := p.first(d)
		switch {
		case d.reads && (w.rule == nil || w.effect == EffectAllow):
		case w.rule == nil && (d.free || d.readsOnly()):
			free, alone = append(free, d), alone && d.free
		default:
			allowed = allowed || w.effect == EffectAllow
			take(d, w)
		}
	}
	if r := p.trusts(req); !decided && len(free) > 0 && alone && r != nil {
		return weighing{effect: EffectAllow, rule: r, always: r.AllowAlways}
	}
	if !allowed { // then nothing is free
		for _, d := range free {
			take(d, p.first(d))
		}
	}
	if out.effect == EffectAllow {
		out.part = ""
	}
	return out
}

// trusts returns a rule that allows some commands where a request is made, or nil:
// then commands that do nothing need no rule of their own.
func (p *Policy) trusts(req *Request) *rule {
	d := &deed{req: req, part: -1, places: &places{policy: p}}
	for i := range p.rules {
		r := &p.rules[i]
		if r.Effect == EffectAllow && len(r.commands) > 0 && len(r.paths)+len(r.servers) == 0 && r.coversCommands(req.Kind) &&
			(len(r.Kinds) == 0 || r.matchKind(req.Kind, true) == matchYes) && (len(r.cwd) == 0 || r.matchCwd(d, req) == matchYes) {
			return r
		}
	}
	return nil
}

// rank orders effects by how much they say against a request.
func rank(e Effect) int { return slices.Index([]Effect{EffectAllow, "", EffectAsk, EffectDeny}, e) }

// first returns what the first rule that matches says about a deed, unless a
// rule before it may match.
func (p *Policy) first(d *deed) weighing {
	var found, doubt *rule
	for i := range p.rules {
		r := &p.rules[i]
		switch d.matches(r) {
		case matchYes:
			found = r
		case matchMaybe:
			if doubt == nil {
				doubt = r
			}
		}
		if found != nil {
			break
		}
	}
	switch {
	case doubt != nil && (found == nil || found.Effect != EffectDeny):
		return weighing{effect: EffectAsk, rule: doubt, doubt: true, open: found == nil, reason: d.doubtful(doubt)}
	case found == nil:
		return weighing{open: true, reason: d.unmatched(p)}
	}
	w := weighing{effect: found.Effect, rule: found, always: found.AllowAlways}
	if found.Effect == EffectAllow && !found.AllowAlways {
		w.always = p.laterAlways(d, found)
	}
	switch found.Effect {
	case EffectDeny:
		w.reason = "the rule " + found.Name + " denies it"
	case EffectAsk:
		w.reason = "the rule " + found.Name + " wants it to be asked"
	}
	return w
}

// laterAlways reports whether a rule behind one that allows a deed allows it, too, and lets “allow always” be chosen.
func (p *Policy) laterAlways(d *deed, found *rule) bool {
	behind := false
	for i := range p.rules {
		r := &p.rules[i]
		if behind && (r.Effect != EffectAllow || r.AllowAlways) && d.matches(r) > matchNo {
			return r.Effect == EffectAllow
		}
		behind = behind || r == found
	}
	return false
}

// A deed is what is asked of the rules: a request or, of a command line, a simple
// command, a file that is read or written by a redirection, or the rest of it.
type deed struct {
	req    *Request
	source string          // of the part
	free   bool            // it needs no rule if another part is allowed
	reader *harmlessReader // of the request
	reads  bool            // it needs no rule; rules that deny or ask are about it
	writes bool            // it writes to a file
	also   *Request

	file *CommandWord // that a redirection names
	of   *CommandPart // whose redirection it is
	all  *line        // that has it

	line *line // nil if nothing is run, or it is not known what
	part int   // which part of the line; below 0 what the parts do not show

	places *places
}

// deeds returns what a request is about.
func (p *Policy) deeds(req *Request) []deed {
	at := &places{policy: p}
	whole := deed{req: req, part: -1, places: at}
	if !req.runs() {
		return []deed{whole}
	}
	whole.line = p.read(req)
	if whole.line == nil || whole.line.parsed == nil || req.commandUnknown() {
		return []deed{whole}
	}
	var list []deed
	parsed := whole.line.parsed
	whole.reader = &harmlessReader{req: req, line: parsed, places: at, entries: maxHarmlessEntries}
	whole.reader.obey(p)
	for i := range parsed.Parts {
		part := &parsed.Parts[i]
		d := whole
		d.part, d.source, d.free = i, whole.line.sourceOf(part), whole.line.isFree(part, req, at)
		if len(part.Words)+len(part.Sets)+len(part.Runs) > 0 {
			list = append(list, d)
		}
		for _, w := range part.Writes {
			to := fileOf(req, part, w, acpv2.ToolKindEdit)
			d := d
			d.req, d.also, d.writes, d.free = to, req, true, false
			d.file, d.of, d.all = &w, part, whole.line
			list = append(list, d)
		}
		for _, w := range part.Reads {
			from := fileOf(req, part, w, acpv2.ToolKindRead)
			d := whole
			d.source, d.req, d.reads, d.line = part.Source, from, true, nil
			d.file, d.of, d.all = &w, part, whole.line
			list = append(list, d)
		}
	}
	if parsed.Unsure != "" || len(list) == 0 || list[0].reads {
		list = append(list, whole)
	}
	return list
}

// fileOf is a request for the file of a redirection. In a directory that the line
// has changed to, it may be there or, if that has failed, where it was before.
func fileOf(req *Request, part *CommandPart, w CommandWord, kind acpv2.ToolKind) *Request {
	r := &Request{Session: req.Session, Title: req.Title, ToolCallID: req.ToolCallID, Kind: string(kind), Cwd: req.Cwd}
	path := homePath(w.Text)
	switch {
	case w.Open:
		r.Paths = []string{""}
	case filepath.IsAbs(path) || part.Dir.Text == "" && !part.Dir.Open:
		r.Paths = []string{path}
	case part.Dir.Open:
		r.Paths = []string{"", path}
	default:
		r.Paths = []string{path, filepath.Join(homePath(part.Dir.Text), path)}
	}
	return r
}

// doubtful says why it is unknown whether a rule matches.
func (d *deed) doubtful(r *rule) string {
	switch {
	case d.line != nil && d.line.parsed != nil && d.part < 0 && d.line.parsed.Unsure != "":
		return d.line.parsed.Unsure + ", and the rule " + r.Name + " may be about that"
	case d.req.commandUnknown():
		return "it is not known what would be run, and the rule " + r.Name + " may be about that"
	case d.req.saysNothing():
		return "it is not known what would be done, and the rule " + r.Name + " may be about that"
	}
	return "the rule " + r.Name + " may be about it"
}

// unmatched says why no rule matches.
func (d *deed) unmatched(p *Policy) string {
	name := d.places.protects(d.req)
	switch {
	case name != "":
		return "it changes a file that other programs go by, and no rule names " + name
	case d.writes:
		return "it writes to a file, which no rule allows"
	case d.line != nil && d.line.parsed != nil && d.part < 0 && d.line.parsed.Unsure != "":
		return d.line.parsed.Unsure
	case d.req.commandUnknown():
		return "it is not certain what would be run"
	case d.line != nil && d.part >= 0:
		for i := range p.rules {
			if o := d.line.uncovered(&p.rules[i], d.part); o != nil {
				return o.Name + " " + o.Does + ", which the rule " + p.rules[i].Name + " does not cover"
			}
		}
	}
	return "no rule allows it"
}

// matches reports whether a rule matches.
func (d *deed) matches(r *rule) match {
	if r.Effect == EffectAllow && d.reads {
		return matchNo
	}
	m := r.matches(d, d.req)
	if d.also != nil && r.Effect == EffectAllow && !d.line.allowedBy(r, -1) && !r.allowsProtected(d, d.req) {
		return m
	}
	if d.also != nil && (len(r.commands) == 0 && len(r.paths) == 0 || r.Effect == EffectAllow && d.line.allowedBy(r, -1)) {
		// What a rule says about everything that is run, or about the line to the
		// letter, it says about this.
		m = max(m, r.matches(d, d.also))
	}
	return m
}

// command reports whether the commands of a rule match.
func (d *deed) command(r *rule, req *Request) match {
	wide := r.Effect != EffectAllow
	switch {
	case !req.runs():
		return min(matchIf(wide && req.saysNothing()), matchMaybe)
	case d.line == nil && wide:
		return matchMaybe
	case d.line == nil:
		return matchNo
	case !req.commandUnknown() && wide && !d.writes:
		return d.line.deniedBy(r, d.part)
	case !req.commandUnknown() && wide:
		return matchNo
	case !req.commandUnknown() && d.writes:
		return matchIf(d.line.allowedBy(r, -1))
	case !req.commandUnknown():
		return matchIf(d.line.allowedBy(r, d.part))
	case !wide: // it is only shown
		return matchNo
	case d.line.parsed == nil:
		return d.line.deniedBy(r, -1)
	}
	m := d.line.deniedBy(r, -1)
	for i := range d.line.parsed.Parts {
		m = max(m, d.line.deniedBy(r, i))
	}
	return m
}

// freeCommands are commands of the shell that do nothing by themselves.
var freeCommands = namesOf(`: true false echo printf pwd test [ [[ exit return break continue wait sleep set shift read type
	which basename dirname nproc uname whoami seq tr cat date`)

// isFree reports whether a part needs no rule where some commands are allowed: it
// runs nothing, only the next part, or changes to a directory below the one of the
// request.
func (l *line) isFree(part *CommandPart, req *Request, at *places) bool {
	for _, set := range part.Sets {
		if name, value, _ := strings.Cut(set, "="); !harmlessVariable(name, value) && (len(part.Words) > 0 || !isLocal(name)) &&
			(name != "IFS" || len(part.Words) > 0 && part.Words[0].Text != "read") { // which only splits words
			return false
		}
	}
	if part.Wrapper || len(part.Words) == 0 {
		return true
	}
	program := part.Words[0].Text
	if part.Words[0].Open || len(part.Options) > 0 {
		return false
	}
	args := part.Words[1:]
	switch program {
	case "cd":
		if len(args) != 1 || args[0].Open || part.Dir.Open {
			return false
		}
		to := homePath(args[0].Text)
		if !filepath.IsAbs(to) && part.Dir.Text != "" {
			to = filepath.Join(homePath(part.Dir.Text), to)
		}
		return at.below(req, to)
	case "export":
		return !slices.ContainsFunc(args, func(w CommandWord) bool {
			name, value, _ := strings.Cut(w.Text, "=")
			return w.Open || !harmlessVariable(name, value)
		})
	case "command":
		return len(args) == 2 && (args[0].Text == "-v" || args[0].Text == "-V") && !args[0].Open
	case "printf":
		return len(args) > 0 && !args[0].Open && !strings.HasPrefix(args[0].Text, "-")
	case "cat": // of what it is given
		return len(args) == 0 && len(part.Reads) == 0
	case "date":
		return len(args) == 0 || len(args) == 1 && !args[0].Open && (strings.HasPrefix(args[0].Text, "+") || args[0].Text == "-u")
	case "read":
		return !slices.ContainsFunc(args, func(w CommandWord) bool {
			return w.Open || w.Text != "" && w.Text[0] != '-' && !isLocal(w.Text)
		})
	case "set":
		return !slices.ContainsFunc(args, func(w CommandWord) bool { return w.Open })
	}
	if len(args) > 0 && args[len(args)-1].Text == "]]" && len(program) == 2 && program[0] == '-' {
		return true // no program: it follows && within [[, in a shell that does not know that
	}
	return freeCommands()[program]
}

// readsOnly reports whether a deed is a part that does nothing but read files below the directory of the request,
// whatever the settings of that directory say.
func (d *deed) readsOnly() bool {
	if d.file != nil || d.part < 0 || runtime.GOOS == "windows" || !filepath.IsAbs(d.req.Cwd) || d.line.parsed.Acts != "" {
		return false
	}
	part := d.line.parsed.Parts[d.part]
	if part.Harmless == nil || part.Harmless.Settings != "" {
		return false
	}
	if d.reader.roots == nil {
		d.reader.within([]string{d.req.Cwd})
	}
	part.Writes, part.Reads = nil, nil // deeds of their own
	return d.reader.part(&part, new(Harmless)) == ""
}

// isLocal reports whether a variable is by its name one of the line itself, not
// one that programs read.
func isLocal(name string) bool {
	return name != "" && name != "path" && name != "fpath" && name == strings.ToLower(name) && !strings.HasSuffix(name, "_proxy") && !strings.HasPrefix(name, "npm_")
}

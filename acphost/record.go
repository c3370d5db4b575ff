package acphost

import "time"

// maxRecordText bounds each text in a record, in bytes, and maxRecordPaths the
// paths.
const (
	maxRecordText  = 4 << 10
	maxRecordPaths = 64
)

// A Record says what was decided, in a form made for a log. Each text in it is
// cut after 4 kB, and the paths after 64.
type Record struct {
	Time       time.Time `json:"time"` // of the request
	Session    string    `json:"session,omitempty"`
	ToolCallID string    `json:"toolCallId,omitempty"`
	ToolName   string    `json:"toolName,omitempty"`
	Title      string    `json:"title,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Command    string    `json:"command,omitempty"` // what would be run
	// Shown is the command that the request shows, where it is not certain what
	// would be run.
	Shown          string   `json:"shown,omitempty"`
	CommandUnknown bool     `json:"commandUnknown,omitempty"`
	Cwd            string   `json:"cwd,omitempty"`
	Paths          []string `json:"paths,omitempty"`
	MorePaths      int      `json:"morePaths,omitempty"` // that were cut

	Effect     Effect `json:"effect"`
	By         Source `json:"by"`
	Rule       string `json:"rule,omitempty"`
	Reason     string `json:"reason,omitempty"`   // as in Decision
	Part       string `json:"part,omitempty"`     // as in Decision
	OptionID   string `json:"optionId,omitempty"` // "" if the outcome was “cancelled”
	OptionKind string `json:"optionKind,omitempty"`
	TookMillis int64  `json:"tookMillis"`
}

// NewRecord returns the record of a decision about a request that came at a time,
// cut as the type says. It is what [Policy.Audit] receives.
func NewRecord(came time.Time, req Request, d Decision) Record {
	r := Record{
		Time: came, Session: short(req.Session), ToolCallID: short(req.ToolCallID), ToolName: short(req.ToolName),
		Title: short(req.Title), Kind: short(req.Kind), Command: short(req.Command),
		Shown: short(req.Shown), CommandUnknown: req.commandUnknown(), Cwd: short(req.Cwd),
		Effect: d.Effect, By: d.By, Rule: short(d.Rule), Reason: short(d.Reason), Part: short(d.Part), TookMillis: time.Since(came).Milliseconds(),
	}
	for _, path := range req.Paths[:min(len(req.Paths), maxRecordPaths)] {
		r.Paths = append(r.Paths, short(path))
	}
	r.MorePaths = len(req.Paths) - len(r.Paths)
	if d.Option != nil {
		r.OptionID, r.OptionKind = short(string(d.Option.OptionID)), short(string(d.Option.Kind))
	}
	return r
}

// audit calls the hook, which must not take the decision with it.
func (p *Policy) audit(r Record) {
	defer func() { _ = recover() }()
	p.Audit(r)
}

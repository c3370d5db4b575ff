package shellline

import "strings"

// A client is a program that runs statements of another language, some of which run commands of the
// system.
type client struct {
	names  string
	source string
	given  string // options with statements, or without which it reads none
	values string // short options with a value
	at     int    // the number of operands if one of them is a statement, 0 if none ever is
	runs   func(text string) bool
}

var clients = []client{
	{names: "psql", source: "https://www.postgresql.org/docs/current/app-psql.html", given: "-c --command -f --file -l --list -V --version --help", values: "cdfFLoPRTvhpU", runs: func(t string) bool {
		return strings.Contains(t, `\`) || strings.Contains(strings.ToLower(t), "program")
	}},
	{names: "mysql mariadb", source: "https://dev.mysql.com/doc/refman/8.4/en/mysql-commands.html", given: "-e --execute -V --version --help", values: "DehPpuS", runs: func(t string) bool {
		t = strings.ToLower(t)
		return strings.Contains(t, `\`) || strings.Contains(t, "system") || strings.Contains(t, "pager") || strings.Contains(t, "source") || strings.Contains(t, "tee")
	}},
	{names: "sqlite3 duckdb", source: "https://sqlite.org/cli.html", given: "-version --version -help --help -c -s", at: 2, runs: runsSQLite},
	{names: "gdb lldb", source: "https://sourceware.org/gdb/current/onlinedocs/gdb.html", given: "-batch --batch -b -v --version -version --help -h", runs: func(string) bool { return false }},
	{names: "ed red", source: "ed(1)", runs: func(string) bool { return false }},
	{names: "ex", source: "ex(1)", runs: func(string) bool { return false }},
	{names: "mail mailx", source: "mailx(1): ~! and !", runs: func(string) bool { return false }},
}

// client examines the statements for a client, or says that it reads them.
func (s *scan) client(c *client, words []word) {
	name, given, operands := shown(words[0]), false, 0
	for i := 1; i < len(words); i++ {
		t := words[i].Text
		if words[i].Open || c.runs(t) {
			s.unsure(name + " may run a command in its text")
			return
		}
		if len(t) < 2 || t[0] != '-' {
			operands++
			continue
		}
		option, _ := splitOption(t)
		given = given || has(c.given, option) || t[1] != '-' && has(c.given, t[:2])
		for j := 1; t[1] != '-' && j < len(t); j++ {
			if strings.IndexByte(c.values, t[j]) >= 0 {
				given = given || has(c.given, "-"+t[j:j+1])
				if j+1 == len(t) && i+1 < len(words) {
					i++
					if words[i].Open || c.runs(words[i].Text) {
						s.unsure(name + " may run a command in its text")
						return
					}
				}
				break
			}
		}
	}
	if !given && (c.at == 0 || operands < c.at) {
		s.unsure(name + " reads what it runs")
	}
}

// tameSQLite are the commands of sqlite3 that run nothing and write to no file.
var tameSQLite = setOf(".tables .schema .mode .headers .header .databases .indexes .dump .fullschema .width .nullvalue .separator .timer .show .stats")

// runsSQLite reports whether text for sqlite3 may run a command or write to a file.
func runsSQLite(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) < 2 || line[0] != '.' || line[1] == '/' || line[1] == '.' {
			continue
		}
		if command, _, _ := strings.Cut(line, " "); !tameSQLite()[command] {
			return true
		}
	}
	text = strings.ToLower(text)
	for _, f := range []string{"load_extension", "writefile", "edit(", "copy", "install ", "attach", "vacuum", "export", "load "} {
		if strings.Contains(text, f) {
			return true
		}
	}
	return false
}

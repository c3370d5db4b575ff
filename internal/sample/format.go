package sample

import (
	"regexp"
	"strconv"
	"strings"
)

var schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// uriFits approximates the WHATWG URL parser the reference uses: an absolute URL, with a
// host where the scheme is one that must have it.
func uriFits(str string) bool {
	str = strings.TrimSpace(str)
	scheme := schemePattern.FindString(str)
	switch strings.ToLower(scheme) {
	case "":
		return false
	case "http:", "https:", "ws:", "wss:", "ftp:":
		host := strings.TrimLeft(str[len(scheme):], `/\`)
		if i := strings.IndexAny(host, `/\?#`); i >= 0 {
			host = host[:i]
		}
		return host != "" && !strings.ContainsAny(host, " <>^|%")
	}
	return true
}

var timePattern = regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func timeFits(str string) bool {
	m := timePattern.FindStringSubmatch(str)
	if m == nil {
		return false
	}
	year, _ := strconv.Atoi(m[1])
	month, _ := strconv.Atoi(m[2])
	day, _ := strconv.Atoi(m[3])
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0) {
		days = 29
	}
	return day <= days
}

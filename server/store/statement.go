package store

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// statement is what the text of a query says about its changes. Texts are constants and are parsed once.
type statement struct {
	writes   bool  // changes audited tables
	compound bool  // several changes: the row count covers only the last one
	alone    bool  // can be part of a larger statement
	sure     bool  // changes a row or fails
	ids      []arg // arguments that identify what it changes
}

// arg is an argument that is an identifier.
type arg struct {
	kind string // such as device_id
	at   int
}

// subjectKinds are the kinds of identifiers in the audit log.
var subjectKinds = []string{
	"access_code_id", "acs_access_group_id", "acs_system_id", "acs_user_id", "action_attempt_id", "client_session_id",
	"connect_webview_id", "connected_account_id", "credential_id", "device_id", "operator_id", "user_identity_id",
	"webhook_id",
}

// IsSubject reports whether the audit log includes identifiers of that name.
func IsSubject(name string) bool { return slices.Contains(subjectKinds, name) }

const workspaceID = "workspace_id"

// unaudited are tables whose changes are not audited.
var unaudited = []string{"audit_log", "idempotency_keys", "leases", "operator_challenges", "server_keys"}

var (
	written     = regexp.MustCompile(`\b(?:insert into|delete from) (\w+)|\bupdate (\w+) (?:(?:as )?\w+ )?set\b`)
	inserted    = regexp.MustCompile(`\binsert into \w+(?: as \w+)? \(([^)]*)\)\s*values \(`)
	plainInsert = regexp.MustCompile(`^insert into \w+ \([^)]*\)\s*values \(`)
	condition   = regexp.MustCompile(`\b(\w+_id) = (?:any\()?\$(\d+)`)
	parameter   = regexp.MustCompile(`^\$(\d+)(?:::[\w\[\]]+)?$`)

	statements sync.Map // text → *statement
)

func statementOf(sql string) *statement {
	if known, ok := statements.Load(sql); ok {
		return known.(*statement)
	}
	s := readStatement(sql)
	statements.Store(sql, s)
	return s
}

func readStatement(sql string) *statement {
	lines := strings.Split(sql, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "--") })
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	s := &statement{}
	for _, m := range written.FindAllStringSubmatch(text, -1) {
		s.writes = s.writes || !slices.Contains(unaudited, m[1]+m[2])
	}
	if !s.writes {
		return s
	}
	s.compound = strings.HasPrefix(text, "with ")
	s.alone = !s.compound && !strings.Contains(text, "returning")
	s.sure = s.alone && plainInsert.MatchString(text) && !strings.Contains(text, "on conflict")
	name := func(kind, position string) {
		if n, err := strconv.Atoi(position); err == nil && (IsSubject(kind) || kind == workspaceID) {
			s.ids = append(s.ids, arg{kind, n - 1})
		}
	}
	for _, m := range condition.FindAllStringSubmatch(text, -1) {
		name(m[1], m[2])
	}
	for _, m := range inserted.FindAllStringSubmatchIndex(text, -1) {
		values := listed(text[m[1]:])
		for i, column := range strings.Split(text[m[2]:m[3]], ",") {
			if i < len(values) {
				if p := parameter.FindStringSubmatch(values[i]); p != nil {
					name(strings.TrimSpace(column), p[1])
				}
			}
		}
	}
	return s
}

// listed splits the contents of a pair of parentheses at its commas. text starts after the opening one.
func listed(text string) (parts []string) {
	depth, begin := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case (c == ',' || c == ')') && depth == 0:
			parts = append(parts, strings.TrimSpace(text[begin:i]))
			begin = i + 1
			if c == ')' {
				return parts
			}
		}
	}
	return parts
}

// named calls f with each argument that identifies a changed resource.
func (s *statement) named(args []any, f func(kind string, id uuid.UUID)) {
	for _, a := range s.ids {
		if a.at >= len(args) {
			continue
		}
		switch v := args[a.at].(type) {
		case uuid.UUID:
			f(a.kind, v)
		case *uuid.UUID:
			if v != nil {
				f(a.kind, *v)
			}
		case []uuid.UUID:
			for _, id := range v {
				f(a.kind, id)
			}
		}
	}
}

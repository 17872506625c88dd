package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// initial is the migration that creates the schema: no older version runs meanwhile.
const initial = "00001"

const newColumn = "adds what old inserts do not bring"

// breaking are statements that a running older version may not survive.
var breaking = map[string]*regexp.Regexp{
	"drops a table":                regexp.MustCompile(`\bdrop table\b`),
	"drops a column or a default":  regexp.MustCompile(`\balter table\b.* drop `),
	"renames":                      regexp.MustCompile(`\brename\b`),
	"changes the type of a column": regexp.MustCompile(`\balter column \S+ (set data )?type\b`),
	"makes an old column not null": regexp.MustCompile(`\balter column \S+ set not null\b`),
	"empties a table":              regexp.MustCompile(`\btruncate\b`),
	newColumn:                      regexp.MustCompile(`\badd (column )?(if not exists )?[a-z_]+ [^,;]*\bnot null\b`),
}

var (
	comment    = regexp.MustCompile(`--[^\n]*`)
	whitespace = regexp.MustCompile(`\s+`)
	harmless   = regexp.MustCompile(`\bdrop (constraint|not null|index)\b`)
	concurrent = regexp.MustCompile(`\b(create|drop)( unique)? index concurrently\b`) // without blocking writers
	locking    = regexp.MustCompile(`\b(alter|drop|lock) table\b|\b(create|drop)( unique)? index\b|\btruncate\b`)
	patience   = regexp.MustCompile(`\bset local lock_timeout = '[1-9]\d{0,2}ms'`)
	contract   = regexp.MustCompile(`(?m)^-- contract: \S+`)
)

// breaks returns what is wrong with a migration.
func breaks(migration string) (faults []string) {
	up, _, _ := strings.Cut(migration, "-- +goose Down")
	if contract.MatchString(up) {
		return nil
	}
	sql := strings.ToLower(whitespace.ReplaceAllString(comment.ReplaceAllString(up, ""), " "))
	for statement := range strings.SplitSeq(harmless.ReplaceAllString(sql, ""), ";") {
		for what, pattern := range breaking {
			if pattern.MatchString(statement) && (what != newColumn || !hasDefault(statement)) {
				faults = append(faults, what+":"+statement)
			}
		}
	}
	return faults
}

// waitsLong reports whether a migration locks tables without a lock_timeout of less than a second.
func waitsLong(migration string) bool {
	up, _, _ := strings.Cut(migration, "-- +goose Down")
	sql := strings.ToLower(whitespace.ReplaceAllString(comment.ReplaceAllString(up, ""), " "))
	return locking.MatchString(concurrent.ReplaceAllString(sql, "")) && !patience.MatchString(sql)
}

// hasDefault reports whether each not null column that a statement adds has a value for rows of old programs.
func hasDefault(statement string) bool {
	for _, column := range regexp.MustCompile(`\badd `).Split(statement, -1)[1:] {
		if strings.Contains(column, "not null") && !strings.Contains(column, "default ") &&
			!strings.Contains(column, "generated ") {
			return false
		}
	}
	return true
}

// Servers of the previous version run during a migration: server/docs/schema.md.
func TestMigrationsSupportThePreviousVersion(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, file := range files {
		if filepath.Base(file)[:5] == initial {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if waitsLong(string(text)) {
			t.Errorf("%s waits a second or more for locks; begin it with: set local lock_timeout = '200ms';", file)
		}
		for _, fault := range breaks(string(text)) {
			t.Errorf("%s %s; see server/docs/schema.md for what to do instead", file, fault)
		}
	}
}

func TestBreakingMigrationsAreSeen(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"alter table a add column b text":                                                     0,
		"alter table a add column b int not null default 0":                                   0,
		"alter table a add column b text, add c int not null default 0":                       0,
		"alter table a add column b int not null":                                             1,
		"alter table a add b int not null default 0, add c int not null, add d int default 1": 1,
		"alter table a\n  drop column b":                                                      1,
		"alter table a drop b":                                                                1,
		"alter table a add column c int, drop if exists b":                                    1,
		"alter table a drop constraint b":                                                     0,
		"alter table a alter column b drop not null":                                          0,
		"alter table a alter column b drop default":                                           1,
		"alter table a alter column b set not null":                                           1,
		"alter table a alter column b type bigint":                                            1,
		"alter table a rename to b":                                                           1,
		"ALTER TABLE a RENAME COLUMN b TO c":                                                  1,
		"drop table a":                                                                        1,
		"truncate a":                                                                          1,
		"drop index a":                                                                        0,
		"create table a (b int not null); create index on a (b)":                              0,
		"-- drop table a\nselect 1":                                                           0,
		"-- contract: no version since 0.2.0 reads it\ndrop table a":                          0,
		"update a set b = 'x' where b is null":                                                0,
		"select 1;\n-- +goose Down\ndrop table a":                                             0,
		"alter table a drop constraint b, add constraint b check (c > 1);":                    0,
	} {
		if got := breaks(sql); len(got) != want {
			t.Errorf("%s: %s", sql, fmt.Sprint(got))
		}
	}
}

func TestLongWaitsAreSeen(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"create view a as select 1":                                                 false,
		"set local lock_timeout = '200ms'; alter table a add column b text":         false,
		"alter table a add column b text":                                           true,
		"create index on a (b)":                                                     true,
		"create index concurrently c on a (b); drop index concurrently if exists d": false,
		"create index concurrently c on a (b); create unique index on a (d)":        true,
		"set local lock_timeout = '2s'; lock table a":                               true,
		"set local lock_timeout = '1000ms'; lock table a":                           true,
		"set local lock_timeout = '0ms'; lock table a":                              true,
		"-- set local lock_timeout = '200ms'\nlock table a":                         true,
		"-- contract: no version since 0.2.0 reads it\nalter table a drop column b": true,
		"select 1;\n-- +goose Down\ndrop table a":                                   false,
	} {
		if waitsLong(sql) != want {
			t.Errorf("%s: %t", sql, !want)
		}
	}
}

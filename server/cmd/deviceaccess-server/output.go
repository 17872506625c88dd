package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	yaml "github.com/oasdiff/yaml3"
	"github.com/urfave/cli/v3"
)

// The formats of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputID    = "id"
)

// outputFlags returns the flags that select how a command prints records.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:      "output",
			Aliases:   []string{"o"},
			Sources:   env("DEVICEACCESS_OUTPUT"),
			Value:     outputTable,
			Category:  "Output",
			Usage:     "print as `FORMAT`: table, json, yaml, or id (one id per line)",
			Validator: validateOneOf(outputTable, outputJSON, outputYAML, outputID),
		},
		&cli.BoolFlag{Name: "no-headers", Category: "Output", Usage: "print tables without their header"},
	}
}

// column is a column of a table.
type column[T any] struct {
	title string
	cell  func(T) string
}

// listing describes how to print records of one kind.
type listing[T any] struct {
	columns []column[T]
	id      func(T) string
	// record returns what JSON and YAML show. By default, they show the record itself.
	record func(T) any
	// empty says what would fill an empty table.
	empty string
}

// print prints records in the format of --output.
func (l listing[T]) print(c *cli.Command, records []T) error {
	switch c.String("output") {
	case outputID:
		for _, r := range records {
			if _, err := fmt.Println(l.id(r)); err != nil {
				return err
			}
		}
		return nil
	case outputJSON, outputYAML:
		shown := make([]any, len(records))
		for i, r := range records {
			shown[i] = l.shown(r)
		}
		return printDocument(os.Stdout, c.String("output"), shown)
	}
	printIfEmpty(len(records), l.empty)
	rows := make([][]string, len(records))
	for i, r := range records {
		rows[i] = make([]string, len(l.columns))
		for j, column := range l.columns {
			rows[i][j] = column.cell(r)
		}
	}
	return printTable(c, l.titles(), rows)
}

// printOne prints one record in the format of --output. Its table has a line per column.
func (l listing[T]) printOne(c *cli.Command, record T) error {
	switch c.String("output") {
	case outputID:
		_, err := fmt.Println(l.id(record))
		return err
	case outputJSON, outputYAML:
		return printDocument(os.Stdout, c.String("output"), l.shown(record))
	}
	rows := make([][]string, len(l.columns))
	for i, column := range l.columns {
		rows[i] = []string{column.title, column.cell(record)}
	}
	return printTable(c, nil, rows)
}

func (l listing[T]) shown(record T) any {
	if l.record != nil {
		return l.record(record)
	}
	return record
}

func (l listing[T]) titles() []string {
	titles := make([]string, len(l.columns))
	for i, column := range l.columns {
		titles[i] = column.title
	}
	return titles
}

// printTable prints aligned rows, below their titles if there are any.
func printTable(c *cli.Command, titles []string, rows [][]string) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	if titles != nil && !c.Bool("no-headers") {
		fmt.Fprintln(t, strings.Join(titles, "\t"))
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// printDocument prints a value as one JSON or YAML document, without PINs and secrets.
func printDocument(out io.Writer, format string, value any) error {
	text, err := encodeWithoutSecrets(value)
	if err != nil {
		return err
	}
	if format == outputJSON {
		var indented bytes.Buffer
		if err := json.Indent(&indented, text, "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, indented.String())
		return err
	}
	var document yaml.Node // JSON is YAML, and its nodes keep the exact numbers
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	inBlocks(&document)
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	return encoder.Close()
}

// inBlocks removes the style of JSON from a YAML node.
func inBlocks(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, below := range n.Content {
		inBlocks(below)
	}
}

// encodeWithoutSecrets encodes a value as JSON, without the fields that contain PINs and secrets.
func encodeWithoutSecrets(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	removeSecrets(decoded)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(decoded)
	return bytes.TrimSpace(out.Bytes()), err
}

// removeSecrets removes PINs and secrets from decoded JSON: fields named code or secret, and the values of a changed
// property named code.
func removeSecrets(value any) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			removeSecrets(one)
		}
	case map[string]any:
		delete(value, "code")
		delete(value, "secret")
		if value["property"] == "code" {
			delete(value, "from")
			delete(value, "to")
		}
		for _, one := range value {
			removeSecrets(one)
		}
	}
}

// formatTime formats a time as every command prints times: RFC 3339 in UTC, in seconds.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// formatOptionalTime formats a time that may be missing.
func formatOptionalTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return formatTime(*t)
}

// formatAge formats a duration for tables in its largest unit, such as "12 min".
func formatAge(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/day)
}

// shortID returns the end of an identifier, which is random, unlike its start.
func shortID(id string) string {
	const length = 8
	if len(id) <= length {
		return id
	}
	return "…" + id[len(id)-length:]
}

// named returns a name with the short id of what it names.
func named(name, id string) string {
	if name == "" {
		return shortID(id)
	}
	return fmt.Sprintf("%s (%s)", printable(name), shortID(id))
}

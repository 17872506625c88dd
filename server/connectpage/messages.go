package connectpage

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// messageFiles have the texts of the pages by their English text, one file per language. A text with a number has
// plural forms instead. English has a file for these only.
//
//go:embed messages
var messageFiles embed.FS

// translation is a text in one language, with a form for each plural of the language if the text has a number.
type translation struct {
	text       string
	one, other string
}

// UnmarshalJSON reads a text, or an object with the plural forms.
func (t *translation) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &t.text) == nil {
		return nil
	}
	var forms struct {
		One   string `json:"one"`
		Other string `json:"other"`
	}
	err := json.Unmarshal(b, &forms)
	t.one, t.other = forms.One, forms.Other
	return err
}

// forms returns the plural forms, or the text.
func (t translation) forms() []string {
	if t.other != "" {
		return []string{t.one, t.other}
	}
	return []string{t.text}
}

// translations holds the texts by the code of the language, and by their English text.
var translations = func() map[string]map[string]translation {
	out := map[string]map[string]translation{}
	for _, l := range locales {
		b, err := messageFiles.ReadFile("messages/" + l.code + ".json")
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		texts := map[string]translation{}
		if err := json.Unmarshal(b, &texts); err != nil {
			panic(fmt.Sprintf("messages/%s.json: %v", l.code, err)) // a test reads the file
		}
		out[l.code] = texts
	}
	return out
}()

// messages is the catalog of translations.
var messages = func() catalog.Catalog {
	b := catalog.NewBuilder(catalog.Fallback(localeTags[0]))
	for i, l := range locales {
		for key, t := range translations[l.code] {
			if err := setMessage(b, localeTags[i], key, t); err != nil {
				panic(fmt.Sprintf("messages/%s.json: %q: %v", l.code, key, err)) // a test reads the file
			}
		}
	}
	return b
}()

func setMessage(b *catalog.Builder, tag language.Tag, key string, t translation) error {
	if t.other == "" {
		return b.SetString(tag, key, t.text)
	}
	return b.Set(tag, key, plural.Selectf(1, "%d", plural.One, t.one, plural.Other, t.other))
}

// isKnown reports whether a text is in the catalog, so that it can be shown in each language. All languages have the
// same texts.
func isKnown(text string) bool {
	_, ok := translations[locales[len(locales)-1].code][text]
	return ok
}

// say returns a text in the language of the reader.
func say(ctx context.Context, text string) string { return translate(ctx, text, nil) }

// sayf is say for a text with a verb for each of args, as in fmt.Sprintf.
func sayf(ctx context.Context, text string, args ...any) string { return translate(ctx, text, args) }

func translate(ctx context.Context, text string, args []any) string {
	switch {
	case !isKnown(text) && len(args) == 0:
		return text
	case !isKnown(text):
		return fmt.Sprintf(text, args...)
	}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
		if n, ok := a.(float64); ok { // a whole number from JSON
			values[i] = int(n)
		}
	}
	return readerIn(ctx).printer.Sprintf(message.Key(text, text), values...)
}

// sayAround returns what is before and after the only argument of a text, which the page emphasizes.
func sayAround(ctx context.Context, text string) (before, after string) {
	const argument = "\x00"
	before, after, _ = strings.Cut(sayf(ctx, text, argument), argument)
	return before, after
}

// part is a piece of a text: words, or a value that the page emphasizes.
type part struct {
	text    string
	isValue bool
}

// sayParts returns a text in pieces, so that the page can emphasize the values.
func sayParts(ctx context.Context, text string, values []string) (out []part) {
	const mark = "\x00"
	marks := make([]any, len(values))
	for i := range values {
		marks[i] = fmt.Sprintf("%s%d%s", mark, i, mark)
	}
	for i, piece := range strings.Split(sayf(ctx, text, marks...), mark) {
		var index int
		if _, err := fmt.Sscanf(piece, "%d", &index); i%2 == 1 && err == nil && index < len(values) {
			out = append(out, part{text: values[index], isValue: true})
			continue
		}
		out = append(out, part{text: piece})
	}
	return out
}

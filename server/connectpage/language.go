package connectpage

import (
	"context"
	"net/http"
	"net/url"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// locale is a language of the pages.
type locale struct {
	// code is the value of lang attributes and of the parameter lang.
	code string
	// name is the name of the language in the language.
	name string
}

// locales are the languages of the pages. The first one is the default.
var locales = []locale{
	{"en", "English"},
	{"de", "Deutsch"},
	{"es", "Español"},
	{"fr", "Français"},
	{"it", "Italiano"},
	{"pt", "Português"},
}

var localeTags, localeMatcher = func() (tags []language.Tag, m language.Matcher) {
	for _, l := range locales {
		tags = append(tags, language.MustParse(l.code))
	}
	return tags, language.NewMatcher(tags)
}()

// maxAcceptLanguage bounds the Accept-Language header that is parsed, in bytes.
const maxAcceptLanguage = 512

// languageParameter is the name of the query parameter with the language that the person has chosen.
const languageParameter = "lang"

// reader is the person for whom a page is rendered.
type reader struct {
	locale
	// chosen means that the person has chosen the language, so that links keep it.
	chosen  bool
	printer *message.Printer
}

// newReader returns the reader of a request: of the language that the URL names, or of the browser's.
func newReader(r *http.Request) reader {
	if i, ok := localeOf(r.URL.Query().Get(languageParameter)); ok {
		return readerOf(i, true)
	}
	header := r.Header.Get("Accept-Language")
	if len(header) > maxAcceptLanguage {
		return readerOf(0, false)
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(wanted) == 0 {
		return readerOf(0, false)
	}
	_, i, _ := localeMatcher.Match(wanted...)
	return readerOf(i, false)
}

func readerOf(i int, chosen bool) reader {
	return reader{
		locale:  locales[i],
		chosen:  chosen,
		printer: message.NewPrinter(localeTags[i], message.Catalog(messages)),
	}
}

// localeOf returns the index of the language with a code.
func localeOf(code string) (index int, ok bool) {
	for i, l := range locales {
		if l.code == code {
			return i, true
		}
	}
	return 0, false
}

type readerKey struct{}

func withReader(ctx context.Context, to reader) context.Context {
	return context.WithValue(ctx, readerKey{}, to)
}

// readerIn returns the reader of a page. Without one, it is a reader of English.
func readerIn(ctx context.Context) reader {
	if found, ok := ctx.Value(readerKey{}).(reader); ok {
		return found
	}
	return readerOf(0, false)
}

// keepLanguage adds the language that the person has chosen to a link to a page.
func keepLanguage(ctx context.Context, path string) string {
	if to := readerIn(ctx); to.chosen {
		return path + "?" + languageQuery(to.locale)
	}
	return path
}

// chosenLanguage returns the language that the person has chosen, or an empty string.
func chosenLanguage(ctx context.Context) string {
	if to := readerIn(ctx); to.chosen {
		return to.code
	}
	return ""
}

func languageQuery(l locale) string {
	return url.Values{languageParameter: {l.code}}.Encode()
}

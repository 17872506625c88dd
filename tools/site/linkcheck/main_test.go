package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		body string
		want string // the problem; empty: none
	}{
		"page":                              {`<a href="../b/">`, ""},
		"page from the root":                {`<a href="/b/">`, ""},
		"anchor":                            {`<a href="../b/#part">`, ""},
		"anchor of the same page":           {`<p id="here"></p><a href="#here">`, ""},
		"anchor with letters of a language": {`<p id="größe"></p><a href="#gr%C3%B6%C3%9Fe">`, ""},
		"named anchor":                      {`<a name="old"></a><a href="#old">`, ""},
		"file":                              {`<a href="../rules.yaml">`, ""},
		"elsewhere":                         {`<a href="https://example.com/x#y">`, ""},
		"file of the repository":            {`<a href="https://git.example/main/LICENSE#L3">`, ""},
		"missing page":                      {`<a href="../c/">`, "no such page"},
		"directory without index":           {`<a href="../empty/">`, "no such page"},
		"missing anchor":                    {`<a href="../b/#other">`, "no such anchor"},
		"missing anchor here":               {`<a href="#other">`, "no such anchor"},
		"missing file":                      {`<a href="https://git.example/main/go.sum">`, "no such file"},
		"style from elsewhere":              {`<link rel="stylesheet" href="https://example.com/x.css">`, "from elsewhere"},
		"script from elsewhere":             {`<script src="//example.com/x.js"></script>`, "from elsewhere"},
		"image from elsewhere":              {`<img src="https://example.com/x.png">`, "from elsewhere"},
		"missing image":                     {`<img src="x.png">`, "no such page"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := checker{
				site: fstest.MapFS{
					"a/index.html":     file(c.body),
					"b/index.html":     file(`<h2 id="part">Part</h2>`),
					"empty/other.html": file(""),
					"rules.yaml":       file(""),
				},
				repository: "https://git.example/main/",
				files:      fstest.MapFS{"LICENSE": file("")},
			}
			problems, err := k.check()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(problems) > 0:
				t.Errorf("there are problems: %q", problems)
			case c.want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }):
				t.Errorf("the problems are %q, want one of %q", problems, c.want)
			}
		})
	}
}

func TestCheck_NoPages(t *testing.T) {
	t.Parallel()
	if _, err := (&checker{site: fstest.MapFS{}}).check(); err == nil {
		t.Error("an empty site is accepted")
	}
}

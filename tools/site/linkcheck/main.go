// Command linkcheck checks the links of a directory of HTML pages: each page, file, and anchor that a page names must
// exist, also files of the repository, and pages may load nothing from elsewhere. It makes no requests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

func main() {
	repository := flag.String("repository", "", "`URL` of the files of the repository, which must exist")
	files := flag.String("files", ".", "`DIRECTORY` with the files of the repository")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: linkcheck [-repository URL] [-files DIRECTORY] SITE")
		os.Exit(2)
	}
	c := checker{site: os.DirFS(flag.Arg(0)), repository: *repository, files: os.DirFS(*files)}
	problems, err := c.check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "linkcheck:", err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	fmt.Printf("linkcheck: %d links on %d pages, %d problems\n", c.links, len(c.pages), len(problems))
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// checker checks a site.
type checker struct {
	site       fs.FS
	repository string
	files      fs.FS

	pages map[string]page
	links int
}

// page is what a page names and what others can name on it.
type page struct {
	links   []link
	anchors map[string]bool
}

// link is a reference of a page. The browser loads it without a click if it is a resource.
type link struct {
	url        string
	isResource bool
}

// check returns a text per problem, in the order of the pages. It fails if there are no pages.
func (c *checker) check() (problems []string, err error) {
	c.pages = map[string]page{}
	err = fs.WalkDir(c.site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		f, err := c.site.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		c.pages[name], err = parse(f)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(c.pages) == 0 {
		return nil, errors.New("the site has no pages")
	}
	names := make([]string, 0, len(c.pages))
	for name := range c.pages {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, l := range c.pages[name].links {
			c.links++
			if problem := c.problem(name, l); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", name, l.url, problem))
			}
		}
	}
	return problems, nil
}

// problem returns what is wrong with a link of a page, or nothing.
func (c *checker) problem(from string, l link) string {
	u, err := url.Parse(l.url)
	if err != nil {
		return err.Error()
	}
	if u.IsAbs() || u.Host != "" {
		if l.isResource {
			return "the page loads it from elsewhere"
		}
		file, inside := strings.CutPrefix(l.url, c.repository)
		if !inside || c.repository == "" {
			return ""
		}
		file, _, _ = strings.Cut(file, "#")
		if _, err := fs.Stat(c.files, path.Clean(file)); err != nil {
			return "the repository has no such file"
		}
		return ""
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
		if strings.HasPrefix(u.Path, "/") {
			target = path.Join(".", u.Path)
		}
		st, err := fs.Stat(c.site, target)
		if err == nil && st.IsDir() {
			target = path.Join(target, "index.html")
			_, err = fs.Stat(c.site, target)
		}
		if err != nil {
			return "the site has no such page"
		}
	}
	if p, isPage := c.pages[target]; isPage && u.Fragment != "" && !p.anchors[u.Fragment] {
		return "the page has no such anchor"
	}
	return ""
}

// parse reads the links and anchors of a page.
func parse(r io.Reader) (page, error) {
	root, err := html.Parse(r)
	if err != nil {
		return page{}, err
	}
	p := page{anchors: map[string]bool{"top": true}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id", a.Key == "name" && n.Data == "a":
				p.anchors[a.Val] = true
			case a.Key == "href":
				p.links = append(p.links, link{a.Val, n.Data == "link"})
			case a.Key == "src":
				p.links = append(p.links, link{a.Val, true})
			}
		}
	}
	return p, nil
}

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mutation is a change at one place of a source file.
type mutation struct {
	file     string
	line     int
	from, to int // offsets of the text to replace
	what     string
	by       string

	before, after string // the lines of this place, without and with the change
}

// shown sets the fields before and after.
func (m *mutation) shown(text []byte) {
	from := bytes.LastIndexByte(text[:m.from], '\n') + 1
	to := len(text)
	if n := bytes.IndexByte(text[m.to:], '\n'); n >= 0 {
		to = m.to + n
	}
	line := func(parts ...[]byte) string { return strings.Join(strings.Fields(string(bytes.Join(parts, nil))), " ") }
	m.before, m.after = line(text[from:to]), line(text[from:m.from], []byte(m.by), text[m.to:to])
}

// String describes the mutation in one line: the place, the old text and the new text.
func (m mutation) String() string {
	return fmt.Sprintf("%s:%d `%s` -> `%s`", m.file, m.line, strings.Join(strings.Fields(m.what), " "),
		strings.Join(strings.Fields(m.by), " "))
}

func (m mutation) apply(text []byte) []byte {
	return slices.Concat(text[:m.from], []byte(m.by), text[m.to:])
}

// operators maps each operator to the one that replaces it.
var operators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ,
	token.LEQ:  token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO,
	token.QUO: token.MUL,
}

// errorNames maps ErrBusy and ErrLost to each other: the errors of a call that certainly had no effect.
var errorNames = map[string]string{"ErrBusy": "ErrLost", "ErrLost": "ErrBusy"}

// mutations lists all changes that can be made to a file. They concern operators, negations, integers, returned
// errors, and calls whose result is not used. In Redis commands they also concern words and pieces of Lua scripts.
func mutations(name string, text []byte) (all []mutation, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(from, to token.Pos, by string) {
		a, b := fset.Position(from), fset.Position(to)
		all = append(all, mutation{file: name, line: a.Line, from: a.Offset, to: b.Offset,
			what: string(text[a.Offset:b.Offset]), by: by})
	}
	source := func(n ast.Node) string {
		return string(text[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset])
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok != token.VAR && g.Tok != token.CONST {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "Spec" {
					return false // the lock's description is not changed
				}
			case *ast.BinaryExpr:
				if by, ok := operators[n.Op]; ok {
					add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), by.String())
				}
			case *ast.UnaryExpr:
				if n.Op == token.NOT {
					add(n.OpPos, n.OpPos+1, "")
				}
			case *ast.Ident:
				if by, ok := errorNames[n.Name]; ok {
					add(n.Pos(), n.End(), by)
				}
			case *ast.ReturnStmt:
				if last := len(n.Results) - 1; last >= 0 {
					if id, ok := n.Results[last].(*ast.Ident); ok && id.Name == "err" {
						add(id.Pos(), id.End(), "nil")
					}
				}
			case *ast.ExprStmt:
				add(n.Pos(), n.End(), "_ = func() { "+source(n)+" }")
			case *ast.DeferStmt:
				add(n.Pos(), n.End(), "_ = func() { "+strings.TrimPrefix(source(n), "defer ")+" }")
			case *ast.BasicLit:
				for _, m := range literals(name, fset.Position(n.Pos()), n) {
					if m.by == "" && m.what == n.Value && strings.HasPrefix(string(text[m.to:]), ", ") {
						m.to += len(", ")
					}
					all = append(all, m)
				}
			}
			return true
		})
	}
	return all, nil
}

// literals lists the changes of a literal: an integer, a word of a Redis command, or a Lua script.
func literals(name string, at token.Position, n *ast.BasicLit) (all []mutation) {
	add := func(from, to int, by string) {
		line := at.Line + strings.Count(n.Value[:from], "\n")
		all = append(all, mutation{file: name, line: line, from: at.Offset + from, to: at.Offset + to,
			what: n.Value[from:to], by: by})
	}
	switch {
	case n.Kind == token.INT:
		if v, err := strconv.Atoi(n.Value); err == nil {
			add(0, len(n.Value), strconv.Itoa(v+1))
		}
	case n.Kind != token.STRING:
	case strings.Contains(n.Value, "redis.call"):
		for _, p := range scriptPieces {
			for _, found := range p.find.FindAllStringSubmatchIndex(n.Value, -1) {
				add(found[0], found[1], string(p.find.ExpandString(nil, p.by, n.Value, found)))
			}
		}
	default:
		if by, ok := words[strings.ToLower(strings.Trim(n.Value, `"`))]; ok {
			add(0, len(n.Value), by)
		}
	}
	return all
}

// words maps words of Redis commands to their replacements. With an empty replacement the word is dropped.
var words = map[string]string{"nx": ``, "xx": ``, "px": `"ex"`, "get": `"strlen"`, "del": `"exists"`,
	"pexpire": `"expire"`,
	"publish": `"echo"`, "watch": `"exists"`, "multi": `"ping"`}

// scriptPieces are the changes of Lua scripts: the pattern to find, and the text that replaces it.
var scriptPieces = []struct {
	find *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`==`), `~=`},
	{regexp.MustCompile(`~=`), `==`},
	{regexp.MustCompile(` and `), ` or `},
	{regexp.MustCompile(` or `), ` and `},
	{regexp.MustCompile(` < `), ` >= `},
	{regexp.MustCompile(` > `), ` <= `},
	{regexp.MustCompile(` \+ `), ` - `},
	{regexp.MustCompile(`\bnot `), ``},
	{regexp.MustCompile(`\breturn 0\b`), `return 1`},
	{regexp.MustCompile(`\breturn 1\b`), `return 0`},
	{regexp.MustCompile(`, *"(PX|NX|XX|EX)"`), ``},
	{regexp.MustCompile(`"PEXPIRE"`), `"EXPIRE"`},
	{regexp.MustCompile(`"DEL"`), `"EXISTS"`},
	{regexp.MustCompile(`"(GET|HGET|HEXISTS|LINDEX|ZSCORE|EXISTS)", KEYS\[1\]`), `"$1", KEYS[1] .. "x"`},
	{regexp.MustCompile(
		`redis\.call\("(PUBLISH|LPOP|RPUSH|LREM|ZREM|ZADD|HINCRBY|HSET|HDEL|INCR|SET|DEL|PEXPIRE)"[^()]*\)`),
		`tonumber(0)`},
	{regexp.MustCompile(`ARGV\[1\]`), `ARGV[2]`},
}

// The documents as a site: .ci/site/build. Pages have the places that they have in the tree; links to code lead to the repository.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

const root = process.env.ROOT // the tree; this stands in a copy of its documents
const copy = resolve(import.meta.dirname, '..')
const source = process.env.SOURCE || 'https://github.com/' + (process.env.GITHUB_REPOSITORY || 'OWNER/hammerlock')

// tree makes links to code lead to the repository, and those to the index of a folder to its page; indented code looks like other code.
function tree(md) {
  md.core.ruler.push('tree', state => {
    const page = state.env.realPath || state.env.path
    for (const block of state.tokens) {
      if (block.type === 'code_block') Object.assign(block, { type: 'fence', info: '' })
      for (const token of block.children || []) {
        const link = token.type === 'link_open' && token.attrGet('href')
        if (!link || /^[a-z]+:|^#/.test(link)) continue
        const file = resolve(root, relative(copy, dirname(page)), link.split('#')[0])
        if (/README.md$/.test(file)) {
          token.attrSet('href', link.replace('README.md', 'index.md'))
        } else if (existsSync(file) && !file.endsWith('.md')) {
          token.attrSet('href', `${source}/blob/main/${relative(root, file)}`)
        }
      }
    }
  })
}

// The index of documents is the menu; their first lines are its texts.
const index = readFileSync(resolve(root, 'docs/README.md'), 'utf8')
const menu = [...index.matchAll(/\]\(([^)]*\.md)\) \|$/gm)].map(([, link]) => {
  const file = resolve(root, 'docs', link)
  return { text: readFileSync(file, 'utf8').match(/^# (.*)/)[1], link: '/' + relative(root, file).replace('README.md', 'index.md') }
})

export default {
  title: 'Hammerlock',
  description: 'Load tests and correctness checks for distributed locks on Redis',
  base: process.env.SITE || '/',
  markdown: { config: tree },
  themeConfig: {
    search: { provider: 'local' },
    nav: [{ text: 'Documents', link: '/docs/' }, { text: 'Source', link: source }],
    sidebar: menu,
    outline: [2, 3]
  }
}

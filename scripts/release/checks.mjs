// What a release needs of the repository, as pure functions of what Git and the files say.

const HEADING = /^## (.+?)(?: - .*)?$/;

/** The lines below the heading of a version, without blank lines around them; `undefined` if there is no such heading. */
export function changelogSection(changelog, version) {
  const lines = changelog.split('\n');
  const headings = lines.flatMap((line, index) => {
    const [, title] = HEADING.exec(line) ?? [];
    return title === undefined ? [] : [{ title: title.replace(/^\[(.*)\]$/, '$1'), index }];
  });
  const at = headings.findIndex(({ title }) => title === version);
  if (at === -1) return undefined;
  return lines
    .slice(headings[at].index + 1, headings[at + 1]?.index)
    .join('\n')
    .trim();
}

/**
 * Why no release is made, as sentences. `changes` are the lines of `git status --porcelain`, and `tags` those of the
 * commit; `isToPublish` asks for what others will rely on.
 */
export function findProblems({ version, lockVersion, changelog, changes, tags, isToPublish }) {
  const problems = [];
  if (changes.length > 0)
    problems.push(`The working tree has changes that no commit has; commit or remove them:\n${changes.join('\n')}`);
  if (!changelogSection(changelog, version)) problems.push(`CHANGELOG.md has no section "## ${version}" with entries.`);
  if (lockVersion !== version)
    problems.push(`package-lock.json is of version ${lockVersion}, and package.json of ${version}.`);
  return isToPublish ? [...problems, ...findPublishingProblems({ version, changelog, tags })] : problems;
}

function findPublishingProblems({ version, changelog, tags }) {
  const problems = [];
  if (changelogSection(changelog, 'Unreleased'))
    problems.push(`CHANGELOG.md has entries under "## Unreleased"; move them to "## ${version}".`);
  if (!tags.includes(`v${version}`)) problems.push(`This commit has no tag v${version}.`);
  return problems;
}

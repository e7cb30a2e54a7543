'use strict';
// A line of CSV for each sample of a benchmark.
function samples(report) {
  const columns = ['cell', 'index', 'variant', 'placement', 'pages', 'keys', 'key_type', 'dist',
    'threads', 'mix', 'batch', 'scan_by', 'scan_length'];
  const quoted = (value) => '"' + String(value ?? '').replaceAll('"', '""') + '"';
  const lines = [['verb', ...columns, 'round', 'mops'].join(',')];
  const add = (verb) => (row) => row.samples.forEach((mops, round) => {
    lines.push([verb, ...columns.map((name) => row[name]), round + 1, mops].map(quoted).join(','));
  });
  report.loads.forEach(add('load'));
  report.results.forEach(add('run'));
  return lines.join('\r\n') + '\r\n';
}
for (const button of document.querySelectorAll('button[data-of]')) {
  const { of, form, name } = button.dataset;
  button.hidden = false;
  button.onclick = () => {
    const data = document.getElementById(of).textContent;
    const text = form === 'csv' ? samples(JSON.parse(data)) : data;
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    link.download = name + '.' + form;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
}

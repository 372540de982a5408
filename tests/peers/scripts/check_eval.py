"""Compares a report of `fleetrun eval` with scikit-learn, on the predictions that the report contains.

usage: check_eval.py FOLDER
"""
import csv
import json
import sys

from sklearn.metrics import accuracy_score, classification_report, confusion_matrix

folder = sys.argv[1]
with open(f'{folder}/report.json') as file:
    report = json.load(file)
with open(f'{folder}/predictions.csv', newline='') as file:
    rows = list(csv.DictReader(file))
with open(f'{folder}/confusion.csv', newline='') as file:
    matrix = list(csv.reader(file))

labels, predicted = [row['label'] for row in rows], [row['predicted'] for row in rows]
theirs = classification_report(labels, predicted, output_dict=True, zero_division=0)


def check(what, ours, wanted):
    assert abs(ours - wanted) < 1e-12, f'{what}: fleetrun has {ours}, scikit-learn {wanted}'


def check_quality(what, ours, wanted):
    for fleetrun_name, name in (('precision', 'precision'), ('recall', 'recall'), ('f1', 'f1-score')):
        check(f'{name} of {what}', ours[fleetrun_name], wanted[name])


check('accuracy', report['accuracy'], accuracy_score(labels, predicted))
for one in report['classes']:
    check_quality(one['name'], one, theirs[one['name']])
    check(f'support of {one["name"]}', one['images'], theirs[one['name']]['support'])
check_quality('the mean', report['mean'], theirs['macro avg'])
check_quality('the weighted mean', report['weighted_mean'], theirs['weighted avg'])

names = matrix[0][1:]
assert names == [row[0] for row in matrix[1:]]
ours = [[int(count) for count in row[1:]] for row in matrix[1:]]
assert ours == confusion_matrix(labels, predicted, labels=names).tolist()
assert ours == report['confusion_matrix']
assert abs(report['loss'] - sum(float(row['loss']) for row in rows) / len(rows)) < 1e-6
print(f'equal for {len(rows)} predictions of {len(report["classes"])} classes')

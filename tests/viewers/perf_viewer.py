#!/usr/bin/env python3
# perf_viewer.py SCRIPT DATABASE COMMAND - opens each window of perf's exported-sql-viewer.py (SCRIPT) on a database, without a display, through its
# menus and dialogs (selected branches: the calls of COMMAND), and prints what they show: a line "WINDOW<tab>column<tab>..." for each row. Exit status 1: an exception, also one that
# Qt swallowed, or a window that had nothing after 100 s.
import importlib.util
import os
import sys
import time
import traceback

os.environ["QT_QPA_PLATFORM"] = "offscreen"
spec = importlib.util.spec_from_file_location("viewer", sys.argv[1])
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
viewer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viewer)
from PySide2.QtCore import QTimer
from PySide2.QtWidgets import QAction, QApplication

failed = []


def swallowed(*what):
    failed.append(what)
    traceback.print_exception(*what)


sys.excepthook = swallowed
sys.setrecursionlimit(20000)


def menu_entries(window):
    """What a user can click, by its text."""
    return {a.text().replace("&", ""): a for a in window.findChildren(QAction)}


def fill_dialog(app, fields):
    """Types into the dialog that is to open, by its labels, and presses Ok."""
    def fill():
        dialog = app.activeModalWidget()
        for item in dialog.data_items:
            if item.label in fields:
                item.widget.setText(fields[item.label])
                item.widget.editingFinished.emit()
        dialog.Ok()
        if dialog.isVisible():
            swallowed(Exception, Exception("the dialog does not accept " + str(fields) + ": " + dialog.status.text()), None)
            dialog.reject()
    QTimer.singleShot(200, fill)


def wait(app, model):
    """Until all records are fetched: what the windows do when one scrolls down, or by their "Fetch" bar."""
    end = time.time() + 100
    asked = -1
    while model.HasMoreRecords():
        if time.time() > end:
            raise Exception("records do not end in 100 s")
        have = model.root.child_count if hasattr(model, "root") else model.child_count
        if have != asked:
            asked = have
            model.FetchMoreRecords(viewer.glb_chunk_sz)
        app.processEvents()
        time.sleep(0.002)


def text(value):
    return str(value).replace("\t", " ").replace("\n", " ").strip()


def put(*columns):
    print("\t".join(text(c) for c in columns))


def show_tree(name, model, item, path):
    n = item.childCount()
    for i in range(max(n, 0)):
        child = item.getChildItem(i)
        own = path + [text(child.getData(0))]
        put(name, len(own), *[child.getData(c) for c in range(1, model.columnCount())], " > ".join(own))
        show_tree(name, model, child, own)


def show_rows(name, model):
    for item in (model.root.child_items if hasattr(model, "root") else model.child_items):
        put(name, *[item.getData(c) for c in range(model.columnCount())])


def cpu_region(point):
    """Which thread ran from there on."""
    region = point.hregion
    return (region.pid, region.tid, region.comm) if region else ("", "", "")


def window_of(main):
    return main.mdi_area.subWindowList()[-1]


def visit(app, main, entry, name=None, tree=False, fields=None):
    if fields is not None:
        fill_dialog(app, fields)
    menu_entries(main)[entry].trigger()
    window = window_of(main)
    app.processEvents()
    name = name or entry
    if tree:
        show_tree(name, window.model, window.model.root, [])
    elif hasattr(window, "data_model") or hasattr(window, "model"):
        model = getattr(window, "data_model", None) or window.model
        wait(app, model)
        show_rows(name, model)
    else:
        for cpu in viewer.LookupModel(window.collection_name).data:
            for point in cpu.points:
                put(name, cpu.title, point.x, point.y, *cpu_region(point))
    window.grab()
    window.close()
    app.processEvents()


def main():
    ref = viewer.DBRef(True, sys.argv[1])
    db, name = ref.Open("main")
    glb = viewer.Glb(ref, db, name)
    app = QApplication(sys.argv)
    glb.app = app
    window = viewer.MainWindow(glb)
    glb.mainwindow = window
    window.show()
    app.processEvents()
    try:
        tables = viewer.GetTableList(glb)
        put("tables", *tables)
        visit(app, window, "Context-Sensitive Call Graph", name="graph", tree=True)
        visit(app, window, "Call Tree", name="tree", tree=True)
        visit(app, window, "All branches", name="all branches")
        visit(app, window, "Selected branches", name="selected branches",
              fields={"Report name:": "x", "Commands:": sys.argv[2], "Raw SQL clause: ": "branch_type = 3"})
        visit(app, window, "Top calls by elapsed time", name="top calls", fields={"Report name:": "x", "Record limit:": "100000"})
        if "Time chart by CPU" in menu_entries(window):
            visit(app, window, "Time chart by CPU", name="time chart")
        for table in tables:
            visit(app, window, table, name=table)
    except Exception:
        swallowed(*sys.exc_info())
    glb.ShutdownInstances()
    db.close()
    sys.stdout.flush()
    os._exit(1 if failed else 0)


main()

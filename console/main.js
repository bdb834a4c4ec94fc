const view = document.getElementById("view");
view.textContent = "Tasks";
